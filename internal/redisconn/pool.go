package redisconn

import (
	"context"
	"runtime"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"
)

// Connections is how many connections a client may have, beside those that it keeps for pipelines: of a cluster to all
// primaries together.
func Connections(ctx context.Context, c goredis.UniversalClient) int {
	switch c := c.(type) {
	case *goredis.Client:
		return c.Options().PoolSize
	case *goredis.ClusterClient:
		var primaries atomic.Int64
		_ = c.ForEachMaster(ctx, func(context.Context, *goredis.Client) error { primaries.Add(1); return nil })
		return c.Options().PoolSize * max(1, int(primaries.Load()))
	}
	return 10 * runtime.GOMAXPROCS(0) // the default of the library
}
