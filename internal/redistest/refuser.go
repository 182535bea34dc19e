package redistest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// refuser is a hook of a client that refuses its n-th command, or pipeline, as a server does that was just started
// again.
type refuser struct{ sent, refuse atomic.Int64 }

var errLoading = errors.New("LOADING Redis is loading the dataset in memory")

func (r *refuser) refuses() bool { return r.sent.Add(1) == r.refuse.Load() }

func (*refuser) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (r *refuser) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if r.refuses() {
			return errLoading
		}
		return next(ctx, cmd)
	}
}

func (r *refuser) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
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

// NoOvertaking demands of a driver on this client that, whichever command of a Publish the server refuses, no message
// is stored that has one before it, of its key, that is not: who publishes again what was refused would turn their
// order round.
func NoOvertaking(t *testing.T, open func(c *goredis.Client) driver.Driver) {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: Shared(t).Addr()})
	t.Cleanup(func() { _ = c.Close() })
	r := new(refuser)
	c.AddHook(r)
	d := open(c)
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	const messages = 600 // more than go in one script
	for n := int64(1); ; n++ {
		msgs := make([]*driver.Message, messages)
		for i := range msgs {
			msgs[i] = &driver.Message{ID: fmt.Sprintf("%d-%d", n, i), Topic: fmt.Sprintf("jobs%d", n), Key: "k", OwnID: i%2 == 0}
		}
		r.sent.Store(0)
		r.refuse.Store(n)
		rs, err := d.Publish(t.Context(), msgs, driver.PublishOptions{})
		if r.sent.Load() < n { // nothing was refused any more
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
