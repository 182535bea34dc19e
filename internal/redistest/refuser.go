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
func NoOvertaking(t *testing.T, open func(t testing.TB, c *goredis.Client) driver.Driver) {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: Shared(t).Addr()})
	t.Cleanup(func() { _ = c.Close() })
	r := new(refuser)
	c.AddHook(r)
	d := open(t, c)
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

// NoOutcomeOvertakes demands of a driver on this client that, whichever command of a Settle the server refuses, no
// outcome stands that has one before it, of its key, that does not. Some need several commands: those of a message that
// was retried before, those with follow-ups in another topic, and more than go in one script.
func NoOutcomeOvertakes(t *testing.T, open func(t testing.TB, c *goredis.Client) driver.Driver) {
	t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: Shared(t).Addr()})
	t.Cleanup(func() { _ = c.Close() })
	r := new(refuser)
	c.AddHook(r)
	d := open(t, c)
	t.Cleanup(func() { _ = d.Close(context.Background()) })
	for n := int64(1); n <= 12; n++ {
		name := fmt.Sprintf("outcomes%d", n)
		ss := outcomes(t, d, name)
		sub := ss.sub
		r.sent.Store(0)
		r.refuse.Store(n)
		errs := sub.Settle(t.Context(), ss.list)
		r.refuse.Store(0)
		first := -1
		for i, err := range errs {
			switch {
			case first < 0 && err != nil:
				first = i
			case first >= 0 && err == nil:
				t.Fatalf("command %d was refused, outcome %d with it (%v), and outcome %d stands", n, first, errs[first], i)
			}
		}
		if err := sub.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// outcomeList is settlements of one key, in order.
type outcomeList struct {
	sub  driver.Subscription
	list []driver.Settlement
}

// outcomes publishes messages of one key, has the first one retried, and returns what settles all of them.
func outcomes(t *testing.T, d driver.Driver, topic string) outcomeList {
	t.Helper()
	const messages = 260 // more than go in one script
	sub, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: topic, Instance: "i", MaxRun: messages})
	if err != nil {
		t.Fatal(err)
	}
	msgs := make([]*driver.Message, messages)
	for i := range msgs {
		msgs[i] = &driver.Message{ID: fmt.Sprintf("%s-%d", topic, i), Topic: topic, Key: "k"}
	}
	if _, err := d.Publish(t.Context(), msgs, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	ds := receiveRun(t, sub, messages)
	if err := sub.Settle(t.Context(), []driver.Settlement{{Delivery: ds[0], Outcome: driver.Retry}})[0]; err != nil {
		t.Fatal(err)
	}
	ds = receiveRun(t, sub, messages)
	ss := outcomeList{sub: sub}
	for i, d := range ds {
		x := driver.Settlement{Delivery: d, Outcome: driver.Ack}
		if i == 2 {
			x.Emit = []*driver.Message{{ID: topic + "-next", Topic: topic + ".next"}}
		}
		ss.list = append(ss.list, x)
	}
	// The last one goes back before those between are done: it is no acknowledgement that could go first.
	last := len(ss.list) - 1
	ss.list[last].Outcome = driver.Release
	ss.list = append(append(ss.list[:1:1], ss.list[last]), ss.list[1:last]...)
	return ss
}

// receiveRun receives what is claimed of the key at once.
func receiveRun(t *testing.T, sub driver.Subscription, most int) []*driver.Delivery {
	t.Helper()
	ds, err := sub.Receive(t.Context(), most)
	if err != nil || len(ds) < 4 {
		t.Fatalf("received %d messages: %v", len(ds), err)
	}
	return ds
}
