package drivertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// stressWorker is a consumer with bad habits.
type stressWorker struct {
	l    *ledger
	r    *rand.Rand
	name string
	stop func() // ends the run, once everything is settled
	s    driver.Subscription
	held []*driver.Delivery
}

func (w *stressWorker) run(ctx context.Context) {
	w.join(ctx)
	defer func() {
		if w.s != nil {
			w.leave()
		}
	}()
	for ctx.Err() == nil && w.s != nil {
		wait, cancel := context.WithTimeout(ctx, time.Duration(1+w.r.IntN(50))*time.Millisecond)
		ds, err := w.s.Receive(wait, 1+w.r.IntN(8))
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			w.l.t.Errorf("Receive: %v", err)
			return
		}
		for _, d := range ds {
			w.l.start(d)
		}
		w.held = ds
		w.work()
		if w.r.IntN(40) == 0 {
			w.leave()
			w.join(ctx)
		}
	}
}

func (w *stressWorker) join(ctx context.Context) {
	s, err := w.l.t.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Group: "work", Instance: w.name,
		Lease: w.l.t.Caps.MinLease, MaxRun: 1 + w.r.IntN(3)})
	if err != nil && ctx.Err() == nil {
		w.l.t.Errorf("Subscribe: %v", err)
	}
	w.s = s
}

// leave closes the subscription, with whatever is still held.
func (w *stressWorker) leave() {
	for _, d := range w.held {
		w.l.giveUp(d, driver.Release)
	}
	w.held = nil
	ctx, cancel := context.WithTimeout(context.Background(), w.l.t.Patience)
	defer cancel()
	if err := w.s.Close(ctx); err != nil {
		w.l.t.Errorf("Subscription.Close: %v", err)
	}
	w.s = nil
}

// work handles what is held, one after the other, and may walk away in the middle.
func (w *stressWorker) work() {
	for len(w.held) > 0 {
		d := w.held[0]
		w.held = w.held[1:]
		w.l.run(d)
		time.Sleep(time.Duration(w.r.IntN(4)) * time.Millisecond)
		switch p := w.r.IntN(100); {
		case p < 80:
			w.settle(d, driver.Ack, 0)
		case p < 88:
			w.settle(d, driver.Retry, time.Duration(w.r.IntN(20))*time.Millisecond)
		case p < 93:
			w.settle(d, driver.Release, time.Duration(w.r.IntN(2)*w.r.IntN(20))*time.Millisecond)
		case p < 98:
			w.settle(d, driver.Dead, 0)
		default:
			w.hang(d)
		}
	}
}

// settle ends d. What returns d to the queue also returns the followers of its key that we hold.
func (w *stressWorker) settle(d *driver.Delivery, o driver.Outcome, after time.Duration) {
	w.l.giveUp(d, o)
	if o == driver.Retry || o == driver.Release {
		w.skipKey(d)
	}
	x := driver.Settlement{Delivery: d, Outcome: o, After: after}
	if o == driver.Retry || o == driver.Dead {
		x.Failure = failure("stress")
	}
	err := w.s.Settle(w.l.t.Context(), []driver.Settlement{x})[0]
	if err != nil && !errors.Is(err, driver.ErrLeaseLost) {
		w.l.t.Errorf("Settle: %v", err)
	}
	if w.l.done(d, o, err) {
		w.stop()
	}
}

// hang outlives the lease of d and settles it then: that must be refused, or it was the last to hold it.
func (w *stressWorker) hang(d *driver.Delivery) {
	for _, h := range w.held {
		w.l.giveUp(h, driver.Release)
	}
	w.held = nil
	time.Sleep(w.l.t.Caps.MinLease + 100*time.Millisecond)
	x := driver.Settlement{Delivery: d, Outcome: driver.Drop}
	if err := w.s.Settle(w.l.t.Context(), []driver.Settlement{x})[0]; !errors.Is(err, driver.ErrLeaseLost) {
		w.l.t.Errorf("%s was settled 100 ms after its lease ended: got error %v, want ErrLeaseLost", d.ID, err)
	}
}

// skipKey forgets d's followers of the same key that are held behind it.
func (w *stressWorker) skipKey(d *driver.Delivery) {
	if d.Key == "" {
		return
	}
	kept := w.held[:0:0]
	for _, h := range w.held {
		if h.Key == d.Key {
			w.l.giveUp(h, driver.Release)
		} else {
			kept = append(kept, h)
		}
	}
	w.held = kept
}
