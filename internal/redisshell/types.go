package redisshell

import (
	"context"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// CheckTypes refuses keys that exist with another type than a driver has for them: something else writes to its
// namespace. Scripts cannot roll back, so that must be found before they write.
func CheckTypes(ctx context.Context, c goredis.UniversalClient, keys []string, typeOf func(key string) string) error {
	cmds := make([]*goredis.StatusCmd, len(keys))
	_, err := c.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, key := range keys {
			cmds[i] = p.Type(ctx, key)
		}
		return nil
	})
	if err != nil {
		return redisconn.Classify(err)
	}
	for i, cmd := range cmds {
		if is, want := cmd.Val(), typeOf(keys[i]); is != "none" && is != want {
			return driver.NewError(driver.ErrConflict,
				fmt.Sprintf("the key %s is a %s, and should be a %s", keys[i], is, want),
				"something else writes keys with this prefix; use another Options.Prefix, or delete the key", nil)
		}
	}
	return nil
}
