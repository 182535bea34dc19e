package redisstream_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A redis:// and a redisstream:// broker on one server, with one prefix, hold values of their own, as they do messages.
func TestNamedValuesAreOfTheBroker(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	server := redistest.Single(t, redistest.Options{})
	lists, err := redis.New(ctx, redis.Options{URL: server.URL(), Prefix: "both"})
	if err != nil {
		t.Fatal(err)
	}
	streams, err := redisstream.New(ctx, redisstream.Options{URL: server.URL(), Prefix: "both"})
	if err != nil {
		t.Fatal(errors.Join(err, lists.Close(ctx)))
	}
	for _, d := range []driver.Driver{lists, streams} {
		w := driver.Write{Name: "a", Data: []byte(d.Capabilities().Driver), If: driver.Absent}
		if err := d.KV().Apply(ctx, "things", driver.KVOptions{}, w)[0].Err; err != nil {
			t.Errorf("%s: %v", d.Capabilities().Driver, err)
		}
	}
	if err := errors.Join(lists.Close(ctx), streams.Close(ctx)); err != nil {
		t.Error(err)
	}
}
