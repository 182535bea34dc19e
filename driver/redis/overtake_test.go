package redis_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// errLoading is what a server says that has just been started again.
var errLoading = errors.New("LOADING Redis is loading the dataset in memory")

// Whichever command of a call the server refuses, no message is stored that has one before it, of its key, that is not:
// who publishes again what was refused would otherwise turn their order round.
func TestNoMessageOvertakesARefusedOne(t *testing.T) {
	t.Parallel()
	var sent, refuse atomic.Int64
	d := openWith(t, redistest.Shared(t).Addr(), namespace(), hook{process: func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
		if sent.Add(1) == refuse.Load() {
			cmd.SetErr(errLoading)
			return errLoading
		}
		return next(ctx, cmd)
	}})
	defer closing(t, d)
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
