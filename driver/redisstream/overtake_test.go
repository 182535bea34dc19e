package redisstream_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestNoMessageOvertakesARefusedOne(t *testing.T) {
	t.Parallel()
	redistest.NoOvertaking(t, func(c *goredis.Client) driver.Driver {
		d, err := redisstream.New(t.Context(), redisstream.Options{Client: c, Prefix: "overtake"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

func TestNoOutcomeOvertakesARefusedOne(t *testing.T) {
	t.Parallel()
	redistest.NoOutcomeOvertakes(t, func(c *goredis.Client) driver.Driver {
		d, err := redisstream.New(t.Context(), redisstream.Options{Client: c, Prefix: "outcomes"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
