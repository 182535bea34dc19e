package failpoints

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

const (
	topic    = "jobs"
	followUp = "follow-ups"
)

// victim is the process that dies.
type victim struct {
	driver.Driver
	s    driver.Subscription
	held *driver.Delivery
}

// operation is what the victim does when it dies, and what may be true afterwards.
type operation struct {
	// consumes says that it has a subscription, holds that it has claimed the message when the operation begins.
	consumes, holds bool
	// prepare brings the message into the state that the operation finds it in, before the victim starts.
	prepare func(w *world)
	do      func(ctx context.Context, v *victim) error
	// repair does what an operator or a producer does who was not answered: the same again, where it is still to be done.
	repair func(w *world)
	// wrong says what is wrong with what was found.
	wrong func(w *world, f found) string
}

var operations = map[string]operation{
	"publish": {
		prepare: func(w *world) {},
		do: func(ctx context.Context, v *victim) error {
			_, err := v.Publish(ctx, []*driver.Message{message()}, driver.PublishOptions{})
			return err
		},
		repair: func(w *world) { w.publish(message()) },
		wrong: func(w *world, f found) string {
			if w.caps.Dedup == driver.DedupPerSession { // who repeats it is another session
				return f.copies(2)
			}
			return f.exactly(1, 0)
		},
	},
	"claim": {
		consumes: true,
		prepare:  (*world).publishIt,
		do:       func(ctx context.Context, v *victim) error { _, err := v.s.Receive(ctx, 1); return err },
		wrong:    func(w *world, f found) string { return f.exactly(1, 0) + f.counted(w, 1) },
	},
	"ack": {
		consumes: true, holds: true,
		prepare: (*world).publishIt,
		do:      func(ctx context.Context, v *victim) error { return settle(ctx, v, acknowledged(v.held)) },
		wrong: func(w *world, f found) string {
			switch copies := w.caps.AtomicEmit == driver.AtomicNever; {
			case len(f.deliveries) > 1 || f.dead > 0:
				return f.exactly(1, 0)
			case f.completed && len(f.deliveries) > 0 && !w.commitsLate():
				return "it was acknowledged, and came again"
			case f.followUps == 0 || f.followUps > 1 && !copies:
				return fmt.Sprintf("%d follow-ups, want one", f.followUps)
			}
			return f.counted(w, 1)
		},
	},
	"retry": {
		consumes: true, holds: true,
		prepare: (*world).publishIt,
		do: func(ctx context.Context, v *victim) error {
			return settle(ctx, v, driver.Settlement{Delivery: v.held, Outcome: driver.Retry,
				Failure: &driver.Failure{Reason: driver.ReasonDownstream}})
		},
		wrong: func(w *world, f found) string { return f.exactly(1, 0) + f.counted(w, 2) },
	},
	"dead": {
		consumes: true, holds: true,
		prepare: (*world).publishIt,
		do:      func(ctx context.Context, v *victim) error { return settle(ctx, v, buried(v.held)) },
		wrong: func(w *world, f found) string {
			switch {
			case w.commitsLate() && f.dead == 1: // the letter is stored before the commit
				return f.counted(w, 1)
			case f.completed && !w.commitsLate():
				return f.exactly(0, 1)
			}
			return f.either() + f.counted(w, 1)
		},
	},
	"move": {
		prepare: func(w *world) {
			m := message()
			m.Delay = driver.Hold
			w.publish(m)
		},
		do:     func(ctx context.Context, v *victim) error { return v.Move(ctx, []driver.Move{moved})[0] },
		repair: (*world).move,
		wrong:  (*world).wrongMove,
	},
	"replay": {
		prepare: func(w *world) { w.publishIt(); w.bury() },
		do:      func(ctx context.Context, v *victim) error { return v.Move(ctx, []driver.Move{replayed})[0] },
		repair:  (*world).replay,
		wrong:   (*world).wrongMove,
	},
	planted + "retry": {
		consumes: true, holds: true,
		prepare: (*world).publishIt,
		do: func(ctx context.Context, v *victim) error {
			if err := settle(ctx, v, driver.Settlement{Delivery: v.held, Outcome: driver.Ack}); err != nil {
				return err
			}
			again := message()
			again.ID = "again"
			_, err := v.Publish(ctx, []*driver.Message{again}, driver.PublishOptions{})
			return err
		},
		wrong: func(w *world, f found) string { return f.copies(2) },
	},
}

var (
	moved    = driver.Move{Target: driver.Target{Topic: topic, ID: "a"}}
	replayed = driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: "a"}}
)

func message() *driver.Message {
	return &driver.Message{ID: "a", OwnID: true, Topic: topic, Body: []byte("a")}
}

func settle(ctx context.Context, v *victim, s driver.Settlement) error {
	return v.s.Settle(ctx, []driver.Settlement{s})[0]
}

// acknowledged is a settlement with a follow-up, whose id comes from its parent: doing it again is no other.
func acknowledged(d *driver.Delivery) driver.Settlement {
	m := &driver.Message{ID: "follow-up-of-" + d.ID, OwnID: true, Topic: followUp, Body: []byte("b")}
	return driver.Settlement{Delivery: d, Outcome: driver.Ack, Emit: []*driver.Message{m}}
}

func buried(d *driver.Delivery) driver.Settlement {
	return driver.Settlement{Delivery: d, Outcome: driver.Dead, Failure: &driver.Failure{Reason: driver.ReasonFatal}}
}
