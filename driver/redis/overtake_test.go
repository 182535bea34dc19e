package redis_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestNoMessageOvertakesARefusedOne(t *testing.T) {
	t.Parallel()
	redistest.NoOvertaking(t, func(c *goredis.Client) driver.Driver {
		d, err := redis.New(t.Context(), redis.Options{Client: c, Prefix: namespace()})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

func TestNoOutcomeOvertakesARefusedOne(t *testing.T) {
	t.Parallel()
	redistest.NoOutcomeOvertakes(t, func(c *goredis.Client) driver.Driver {
		d, err := redis.New(t.Context(), redis.Options{Client: c, Prefix: namespace()})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
