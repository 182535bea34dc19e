package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Types of our keys. Scripts cannot roll back, so each looks at the types of what it will write before it does;
// lua/types.lua has them in the same order.
var (
	topicKeyTypes = [topicKeys]string{"hash", "hash", "hash", "hash", "hash", "zset", "zset", "zset", "hash", "zset",
		"hash", "hash", "zset", "hash", "zset", "hash", "hash", "hash", "hash"}
	groupKeyTypes = [groupKeys]string{"hash", "list", "list", "list", "list", "zset", "zset", "zset", "zset",
		"hash", "hash",
		"hash", "hash", "zset", "set", "zset", "hash", "hash", "hash", "zset", "hash"}
)

// typesOf returns the types that keys of ours should have.
func typesOf(keys []string) []string {
	types := make([]string, len(keys))
	for i, key := range keys {
		name := key[strings.LastIndexByte(key, ':')+1:]
		if n := slices.Index(topicKeyNames[:], name); n >= 0 {
			types[i] = topicKeyTypes[n]
		} else if n := slices.Index(groupKeyNames[:], name); n >= 0 {
			types[i] = groupKeyTypes[n]
		}
	}
	return types
}

// nameForeign makes the error of a script that met a key of another type say which one it is.
func (d *Driver) nameForeign(ctx context.Context, keys []string, err error) error {
	if !redisconn.IsWrongType(err) {
		return err
	}
	var found *driver.Error
	if !errors.As(d.checkTypes(ctx, keys, typesOf(keys)), &found) || !errors.Is(found, driver.ErrConflict) {
		return err // it is gone already
	}
	return driver.NewError(driver.ErrNotApplied, found.Text, found.Hint, err)
}

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
			return driver.NewError(driver.ErrConflict,
				fmt.Sprintf("the key %s is a %s, and should be a %s", keys[i], t, types[i]),
				"something else writes keys with this prefix; use another Options.Prefix, or delete the key", nil)
		}
	}
	return nil
}
