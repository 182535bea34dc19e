package redis

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
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

// checkTypes refuses keys that exist with another type. Each script looks at those of what it will write before it
// does; lua/types.lua has them in the same order.
func (d *Driver) checkTypes(ctx context.Context, keys []string) error {
	return redisshell.CheckTypes(ctx, d.client, keys, typeOf)
}
