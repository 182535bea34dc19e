package redisconn

import (
	"context"
	"strconv"
	"strings"
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
	for _, section := range []string{"memory", "clients"} {
		text, err := node.Info(ctx, section).Result()
		if goredis.HasErrorPrefix(err, "NOPERM") {
			continue
		}
		if err != nil {
			return u, err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				continue
			}
			switch name {
			case "used_memory":
				u.Memory = n
			case "maxmemory":
				u.MemoryLimit = n
			case "connected_clients":
				u.Connections = int(n)
			}
		}
	}
	return u, nil
}
