package main

import (
	"context"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// subBatch is how many messages are received at once.
const subBatch = 100

// watcher prints deliveries, and acknowledges or holds them.
type watcher struct {
	session session
	member  driver.Subscription
	out     *listing[deliveryView]
	ack     bool
	count   int           // 0: no end
	renew   time.Duration // how often leases of what is held are extended

	held    []*driver.Delivery
	renewed time.Time
	printed int
	late    int // leases lost meanwhile
}

// deliveryView is a message as it was delivered.
type deliveryView struct {
	messageView
	Ref        string `json:"ref"`
	Group      string `json:"group"`
	Attempt    int    `json:"attempt"`
	Deliveries int    `json:"deliveries"`
	Cause      string `json:"cause"`
}

func newWatcher(s session, member driver.Subscription, lease time.Duration, o subOptions) *watcher {
	out := newListing(s.remote, []column[deliveryView]{
		{width: 36, cell: func(v deliveryView) any { return v.ID }},
		{width: 12, cell: func(v deliveryView) any { return v.Key }},
		{cell: func(v deliveryView) any { return v.preview() }},
	})
	out.live = true
	return &watcher{session: s, member: member, out: out, ack: o.ack, count: o.count, renew: lease / 3,
		renewed: time.Now()}
}

// run prints until the count is reached or ctx ends.
func (w *watcher) run(ctx context.Context) error {
	for {
		n := w.wanted()
		if n == 0 {
			return nil
		}
		ds, err := w.receive(ctx, n)
		switch {
		case ctx.Err() != nil && len(ds) == 0:
			return nil
		case err != nil:
			return err
		}
		if err := w.print(ctx, ds); err != nil {
			return err
		}
		if err := w.keep(ctx, ds); err != nil {
			return err
		}
	}
}

// wanted returns how many more to ask for.
func (w *watcher) wanted() int {
	n := subBatch
	if w.count > 0 {
		n = min(n, w.count-w.printed)
	}
	if !w.ack {
		n = min(n, driver.DefaultMaxInflight-w.printed)
	}
	return n
}

// receive waits for messages. Meanwhile it extends the leases of those it holds, also while others keep coming. It does
// so itself, between two calls, and not by a keeper beside it: so nothing is extended that is being printed or settled.
func (w *watcher) receive(ctx context.Context, n int) ([]*driver.Delivery, error) {
	for {
		if time.Since(w.renewed) >= w.renew {
			if err := w.extend(ctx); err != nil {
				return nil, err
			}
		}
		wait, cancel := context.WithDeadline(ctx, w.renewed.Add(w.renew))
		ds, err := w.member.Receive(wait, n)
		cancel()
		if len(ds) > 0 || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return ds, err
		}
	}
}

func (w *watcher) print(ctx context.Context, ds []*driver.Delivery) error {
	for _, d := range ds {
		m, err := w.session.broker.UndoFilters(ctx, d.Message)
		if w.session.faults.add(err); err != nil {
			m = d.Message
		}
		v := deliveryView{messageView: viewMessage(m), Ref: d.Ref.String(), Group: d.Group,
			Attempt: d.Attempt, Deliveries: d.Deliveries, Cause: d.Cause.String()}
		if err := w.out.add(v); err != nil {
			return err // not acknowledged: nobody has seen it
		}
		w.printed++
	}
	return nil
}

// keep acknowledges what was printed, or holds it until the end.
func (w *watcher) keep(ctx context.Context, ds []*driver.Delivery) error {
	if !w.ack {
		w.held = append(w.held, ds...)
		return nil
	}
	settlements := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		settlements[i] = driver.Settlement{Delivery: d, Outcome: driver.Ack}
	}
	return w.lost(w.member.Settle(context.WithoutCancel(ctx), settlements))
}

func (w *watcher) extend(ctx context.Context) error {
	if w.renewed = time.Now(); len(w.held) == 0 {
		return nil
	}
	errs := w.member.Extend(ctx, w.held)
	kept := w.held[:0]
	for i, err := range errs {
		if !errors.Is(err, driver.ErrLeaseLost) {
			kept = append(kept, w.held[i])
		}
	}
	w.held = kept
	if ctx.Err() != nil {
		return nil
	}
	return w.lost(errs)
}

// lost counts leases that were lost, and returns any other error.
func (w *watcher) lost(errs []error) error {
	var problem error
	for _, err := range errs {
		if errors.Is(err, driver.ErrLeaseLost) {
			w.late++
			continue
		}
		problem = errors.Join(problem, err)
	}
	return problem
}

// summary says what became of the messages.
func (w *watcher) summary() {
	fate := "given back"
	if w.ack {
		fate = "acknowledged"
	}
	w.session.notef("%d messages, %s", w.printed, fate)
	if w.late > 0 {
		w.session.notef("%d of them were held too long and went back before that: they are delivered again", w.late)
	}
	if !w.ack && w.printed == driver.DefaultMaxInflight {
		w.session.notef("it stopped because it cannot hold more")
	}
}
