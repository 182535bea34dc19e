package redisstream_test

import (
	"context"
	"crypto/rand"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redisstream"
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
	d, err := redisstream.New(context.Background(), redisstream.Options{Client: c, Prefix: "t" + rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
