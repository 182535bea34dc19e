package redis

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// nameForeign makes the error of a script that met a key of another type say which one it is.
func (d *Driver) nameForeign(ctx context.Context, keys []string, err error) error {
	if !redisconn.IsWrongType(err) {
		return err
	}
	var found *driver.Error
	if !errors.As(d.checkTypes(ctx, keys), &found) || !errors.Is(found, driver.ErrConflict) {
		return err // it is gone already
	}
	return driver.NewError(driver.ErrNotApplied, found.Text, found.Hint, err)
}

// checkTypes refuses keys that exist with another type: something else writes to our namespace. Scripts cannot roll
// back, so each looks at the types of what it will write before it does; lua/types.lua has them in the same order.
func (d *Driver) checkTypes(ctx context.Context, keys []string) error {
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
		if t, want := c.Val(), typeOf(keys[i]); t != "none" && t != want {
			return driver.NewError(driver.ErrConflict,
				fmt.Sprintf("the key %s is a %s, and should be a %s", keys[i], t, want),
				"something else writes keys with this prefix; use another Options.Prefix, or delete the key", nil)
		}
	}
	return nil
}
