package redis

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	goredis "github.com/redis/go-redis/v9"
)

// Types of our keys. Scripts cannot roll back, so a foreign key must be found before one of them stumbles over it.
var (
	topicKeyTypes = [topicKeys]string{"hash", "hash", "hash", "hash", "hash", "zset", "zset", "zset", "hash", "zset",
		"hash", "hash", "zset", "hash", "zset", "hash", "hash", "hash", "hash"}
	groupKeyTypes = [groupKeys]string{"hash", "list", "list", "list", "list", "zset", "zset", "zset", "zset", "hash", "hash",
		"hash", "hash", "zset", "set", "zset", "hash", "hash", "hash", "zset"}
)

// checkTypes refuses keys that exist with another type: something else writes to our namespace.
func (d *Driver) checkTypes(ctx context.Context, keys, types []string) error {
	cmds := make([]*goredis.StatusCmd, len(keys))
	_, err := d.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, k := range keys {
			cmds[i] = p.Type(ctx, k)
		}
		return nil
	})
	if err != nil {
		return redisconn.Classify(err)
	}
	for i, c := range cmds {
		if t := c.Val(); t != "none" && t != types[i] {
			return driver.NewError(driver.ErrConflict, fmt.Sprintf("the key %s is a %s, and should be a %s", keys[i], t, types[i]),
				"something else writes keys with this prefix; use another Options.Prefix, or delete the key", nil)
		}
	}
	return nil
}
