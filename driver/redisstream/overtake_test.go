package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

// errLoading is what a server says that has just been started again.
var errLoading = errors.New("LOADING Redis is loading the dataset in memory")

// Whichever command of a call the server refuses, no message is stored that has one before it, of its key, that is not:
// who publishes again what was refused would otherwise turn their order round.
func TestNoMessageOvertakesARefusedOne(t *testing.T) {
	t.Parallel()
	var sent, refuse atomic.Int64
	d := failing(t, func() bool { return sent.Add(1) == refuse.Load() })
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	const messages = 600
	for n := int64(1); ; n++ {
		msgs := make([]*driver.Message, messages) // more than go in one script
		for i := range msgs {
			msgs[i] = &driver.Message{ID: fmt.Sprintf("%d-%d", n, i), Topic: fmt.Sprintf("jobs%d", n), Key: "k", OwnID: i%2 == 0}
		}
		sent.Store(0)
		refuse.Store(n)
		rs, err := d.Publish(t.Context(), msgs, driver.PublishOptions{})
		if sent.Load() < n { // nothing was refused any more
			if err != nil {
				t.Error(err)
			}
			return
		}
		first := -1
		for i := range rs {
			switch {
			case first < 0 && rs[i].Err != nil:
				first = i
			case first >= 0 && rs[i].Err == nil:
				t.Fatalf("command %d was refused, message %d with it (%v), and message %d was stored", n, first, rs[first].Err, i)
			}
		}
	}
}

// refuser refuses commands, in a pipeline all of them.
type refuser struct{ refuses func() bool }

func (refuser) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (r refuser) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if r.refuses() {
			cmd.SetErr(errLoading)
			return errLoading
		}
		return next(ctx, cmd)
	}
}

func (r refuser) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if !r.refuses() {
			return next(ctx, cmds)
		}
		for _, cmd := range cmds {
			cmd.SetErr(errLoading)
		}
		return errLoading
	}
}

// failing returns a driver whose commands are refused when the test says so.
func failing(t *testing.T, refuses func() bool) *redisstream.Driver {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	c.AddHook(refuser{refuses})
	t.Cleanup(func() { _ = c.Close() })
	d, err := redisstream.New(context.Background(), redisstream.Options{Client: c, Prefix: "overtake"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}
