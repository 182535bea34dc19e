package redis_test

import (
	"context"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestNoMessageOvertakesARefusedOne(t *testing.T) {
	t.Parallel()
	redistest.NoOvertaking(t, openOver)
}

func TestNoOutcomeOvertakesARefusedOne(t *testing.T) {
	t.Parallel()
	redistest.NoOutcomeOvertakes(t, openOver)
}

func openOver(t testing.TB, c *goredis.Client) driver.Driver {
	t.Helper()
	d, err := redis.New(context.Background(), redis.Options{Client: c, Prefix: namespace()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
