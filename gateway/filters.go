package gateway

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// plain returns the deliveries that a client gets, and beside each what is shown of it: the message as it was before
// filters changed it. What is held, and settled, is the message as it is stored. Of one that cannot be undone becomes
// what a worker would make of it.
func (g *Gateway) plain(ctx context.Context, s *session, ds []*driver.Delivery) (held, shown []*driver.Delivery) {
	for _, d := range ds {
		m, err := g.broker.UndoFilters(ctx, d.Message)
		if err != nil {
			// if the broker does not take it, it comes again
			s.sub.Settle(context.WithoutCancel(ctx), []driver.Settlement{undecoded(d, err)})
			continue
		}
		p := d
		if m != d.Message {
			p = new(driver.Delivery)
			*p = *d
			p.Message = m
		}
		held, shown = append(held, d), append(shown, p)
	}
	return held, shown
}

// undecoded settles a delivery whose body cannot be read: a dead letter, or a retry if what a filter asked did not
// answer.
func undecoded(d *driver.Delivery, err error) driver.Settlement {
	in := settlement{Error: err.Error()}
	s := driver.Settlement{Delivery: d, Outcome: driver.Dead, Failure: in.failure(driver.ReasonInvalidMessage)}
	if !errors.Is(err, driver.ErrInvalid) {
		s.Outcome = driver.Retry
		in.retry(&s)
	}
	return s
}

// prepare makes a follow-up what a publish, or worker.Emit, would: seen by hooks, checked, authorised, and changed by
// filters.
func (g *Gateway) prepare(ctx context.Context, m *driver.Message) error {
	hooks := g.broker.Hooks()
	if hooks.Publishing != nil {
		ctx = hooks.Publishing(ctx, m)
	}
	if err := m.Validate(g.driver.Capabilities().MaxBody); err != nil {
		return err
	}
	if hooks.Authorize != nil {
		if err := hooks.Authorize(ctx, ferry.Access{Topic: m.Topic, Message: m}); err != nil {
			return err
		}
	}
	return g.broker.ApplyFilters(ctx, m)
}
