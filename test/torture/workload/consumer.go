package workload

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/test/torture/history"
	"github.com/ferrymq/ferry/worker"
)

// Consumer handles the messages of some groups of one topic, as its Settings say.
type Consumer struct {
	Settings
	Host
}

var errOnPurpose = errors.New("failed on purpose")

// Run handles messages until ctx ends, then drains.
func (c *Consumer) Run(ctx context.Context) error {
	w := worker.New(c.Broker, worker.Options{
		Instance: c.Instance, Concurrency: c.Concurrency, Lease: c.Lease,
		MaxAttempts: c.MaxAttempts, MaxDeliveries: c.MaxDeliveries,
		StopTimeout: max(5*time.Second, 2*c.Lease), // a slow handler takes up to one and a half
		// MaxElapsed is far away: only a client that compares its own clock with the broker's runs into it.
		Retry: ferry.RetryPolicy{Delays: []time.Duration{20 * time.Millisecond, 150 * time.Millisecond,
			1100 * time.Millisecond}, MaxElapsed: 30 * time.Minute},
	})
	for _, group := range c.Groups {
		worker.HandleRaw(w, c.Topic, c.handle, worker.Group(group))
	}
	c.Log.Record(history.Event{Kind: history.KindStart})
	err := w.Run(ctx)
	stop := history.Event{Kind: history.KindStop}
	if err != nil {
		stop.Note = err.Error()
	}
	c.Log.Record(stop)
	if ctx.Err() != nil && away(err) {
		return nil // told to end while the broker was away: what it did not take comes again, and is judged
	}
	return err
}

// away says that the broker was not reached, or its answer lost.
func away(err error) bool {
	return errors.Is(err, ferry.ErrNotApplied) || errors.Is(err, ferry.ErrUnknown)
}

// handle works for a moment, and then does what its habits and the message's fate say.
func (c *Consumer) handle(ctx context.Context, d *ferry.Delivery) error {
	c.Pass()
	c.Log.Record(history.Claim(history.KindDelivered, d))
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.ID + d.Group))
	fate := rand.New(rand.NewPCG(c.Seed^h.Sum64(), uint64(d.Attempt)))
	work, outcome := c.Habits.choose(fate)
	pause(context.WithoutCancel(ctx), work) // the rude kind of handler: it does not look at its context
	c.Pass()
	done := history.Event{Kind: history.KindHandled, ID: d.ID, Topic: d.Topic, Group: d.Group, Note: history.HandledOK}
	if d.Token != nil {
		done.Token = d.Token.String()
	}
	if outcome != succeed {
		done.Note = string(outcome)
	}
	c.Log.Record(done)
	switch outcome {
	case fail:
		return errOnPurpose
	case crash:
		panic(errOnPurpose)
	}
	return nil
}
