package redisconn

import (
	"context"
	"strconv"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// Usage asks every primary what it uses, and adds it up. What an ACL hides is unknown.
func Usage(ctx context.Context, client goredis.UniversalClient) (driver.Usage, error) {
	cluster, ok := client.(*goredis.ClusterClient)
	if !ok {
		return usageOf(ctx, client)
	}
	var mu sync.Mutex // ForEachMaster asks all at once
	var total driver.Usage
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
		u, err := usageOf(ctx, node)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		total.Memory += u.Memory
		total.MemoryLimit += u.MemoryLimit
		total.Connections += u.Connections
		return nil
	})
	return total, err
}

func usageOf(ctx context.Context, node goredis.Cmdable) (driver.Usage, error) {
	var u driver.Usage
	info := map[string]string{}
	for _, section := range []string{"memory", "clients"} {
		text, err := node.Info(ctx, section).Result()
		if goredis.HasErrorPrefix(err, "NOPERM") {
			continue
		}
		if err != nil {
			return u, err
		}
		readInfo(info, text)
	}
	u.Memory, _ = strconv.ParseInt(info["used_memory"], 10, 64)
	u.MemoryLimit, _ = strconv.ParseInt(info["maxmemory"], 10, 64)
	u.Connections, _ = strconv.Atoi(info["connected_clients"])
	return u, nil
}
