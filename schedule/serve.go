package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/unique"
)

// atOnce is how many ticks are taken together: what is due at midnight is read, published and noted in few requests.
const atOnce = 256

// abreast is how many parts of them are settled side by side: where follow-ups are no part of a step, each takes some
// requests of its own.
const abreast = 16

// parkFor is how long a tick waits whose schedule could not be read: by an older version, or on a machine that lacks
// its time zone.
const parkFor = 5 * time.Second

// server is a Scheduler that runs.
type server struct {
	*Scheduler
	names *unique.Keeper // of unique ids
}

// serve takes ticks until something fails. It reports whether it took any.
func (s *server) serve(ctx context.Context) (served bool, err error) {
	if _, err := s.kv.Get(ctx, bucketSchedules); err != nil {
		return false, err // a broker without named values
	}
	sub, err := s.driver.Subscribe(ctx,
		driver.SubscribeOptions{Topic: Topic, Instance: s.o.Instance, Lease: s.o.Lease, MaxInflight: atOnce})
	if err != nil {
		return false, err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err = errors.Join(err, sub.Close(limited)) // gives back what is held
	}()
	for {
		ds, err := sub.Receive(ctx, atOnce)
		if err != nil {
			return served, err
		}
		if err := s.take(ctx, sub, ds); err != nil {
			return served, err
		}
		served = true
	}
}

// taken is a tick that was taken, and what is to be done about it.
type taken struct {
	delivery *driver.Delivery
	tick     tick
	found    found
	message  *driver.Message // the user's; nil: none is published
	claim    *unique.Claim   // of the message's unique id; nil: it has none
	next     *driver.Message // the tick after it; nil: there is none
	progress *progress       // how far the schedule is then; nil: nothing is noted
	park     bool            // until it can be done, here or by another instance
}

// settlement returns how the delivery ends.
func (t *taken) settlement() driver.Settlement {
	if t.park {
		return driver.Settlement{Delivery: t.delivery, Outcome: driver.Release, After: parkFor}
	}
	x := driver.Settlement{Delivery: t.delivery, Outcome: driver.Ack}
	for _, m := range []*driver.Message{t.message, t.next} {
		if m != nil {
			x.Emit = append(x.Emit, m)
		}
	}
	return x
}

// note returns what is written once the tick is settled, or nil.
func (t *taken) note() *driver.Write {
	switch {
	case t.park:
		return nil
	case t.found.orphaned(): // whoever deleted the schedule did not come to its end
		return &driver.Write{Name: t.found.name, Delete: true, If: driver.Condition(t.found.at.stored), Quiet: true}
	case t.progress == nil:
		return nil
	}
	w := t.progress.write(t.found.name)
	return &w
}

// take settles ticks: each together with the user's message and the tick after it.
func (s *server) take(ctx context.Context, sub driver.Subscription, ds []*driver.Delivery) error {
	all, err := s.gather(ctx, ds)
	if err != nil {
		return err
	}
	for _, t := range all {
		s.judge(ctx, t)
	}
	s.claim(ctx, all)
	list := make([]driver.Settlement, len(all))
	for i, t := range all {
		list[i] = t.settlement()
	}
	var failed error
	var notes []driver.Write
	for i, err := range settle(ctx, sub, list) {
		t := all[i]
		if permanent(err) { // the message cannot be published here; the schedule goes on
			err = s.passOver(ctx, sub, t, err)
		}
		s.noteUnique(t, err)
		switch note := t.note(); {
		case err == nil && note != nil:
			notes = append(notes, *note)
		case errors.Is(err, driver.ErrLeaseLost), errors.Is(err, driver.ErrUnknown):
			// it comes again, if need be, and publishes the same ids
		default:
			failed = errors.Join(failed, err)
		}
	}
	s.note(ctx, notes...)
	return failed
}

// settle settles ticks, each of another schedule, in no order.
func settle(ctx context.Context, sub driver.Subscription, list []driver.Settlement) []error {
	errs, part := make([]error, len(list)), (len(list)+abreast-1)/abreast
	var parts sync.WaitGroup
	for from := 0; from < len(list); from += part {
		to := min(from+part, len(list))
		parts.Go(func() { copy(errs[from:to], sub.Settle(ctx, list[from:to])) })
	}
	parts.Wait()
	return errs
}

// gather reads what the ticks are about.
func (s *Scheduler) gather(ctx context.Context, ds []*driver.Delivery) ([]*taken, error) {
	all, names := make([]*taken, len(ds)), make([]string, len(ds))
	for i, d := range ds {
		all[i] = &taken{delivery: d}
		if err := json.Unmarshal(d.Body, &all[i].tick); err != nil || checkName(all[i].tick.Name) != nil {
			all[i].tick = tick{Name: "?"} // none of ours: no schedule has this revision
		}
		names[i] = all[i].tick.Name
	}
	known, err := s.read(ctx, names...)
	if err != nil {
		return nil, err
	}
	for i, k := range known {
		all[i].found = k
	}
	return all, nil
}

// judge decides what a tick does. One of a schedule that is gone, or of an older revision, or that was taken before, is
// forgotten.
func (s *Scheduler) judge(ctx context.Context, t *taken) {
	d, at := t.found.def, instant(t.tick.At)
	switch {
	case t.found.orphaned():
		return
	case t.found.bad != nil:
		s.log.WarnContext(ctx, "a schedule cannot be run here, and is left to another instance", "schedule", t.found.name,
			"error", t.found.bad)
		t.park = true
		return
	case d == nil || d.revision != t.tick.Revision || at.IsZero() || t.found.at.past(d, at):
		return
	}
	fires, next := d.decide(at, t.delivery.ClaimedAt)
	t.progress = &progress{Revision: d.revision, Next: millis(next), Last: millis(at), stored: t.found.at.stored}
	if !next.IsZero() {
		t.next = d.message(next)
	}
	if !fires {
		return
	}
	t.message = fired(&d.Schedule, d.epoch, at)
	switch err := s.ready(ctx, t.message); {
	case errors.Is(err, driver.ErrNotApplied): // of a filter that may answer later
		s.log.WarnContext(ctx, "a scheduled message cannot be made ready, and is tried again", "schedule", d.Name,
			"error", err)
		t.park = true
	case err != nil:
		s.skip(ctx, t, err)
	}
}

// skip has a tick pass without its message, and tells why.
func (s *Scheduler) skip(ctx context.Context, t *taken, why error) {
	t.message = nil
	t.progress.Problem = s.problem(ctx, t.found.name, why)
}

// ready asks the broker's hook and has the body filtered, as a publish would.
func (s *Scheduler) ready(ctx context.Context, m *ferry.Message) error {
	if err := s.authorize(ctx, m); err != nil {
		return err
	}
	return s.broker.ApplyFilters(ctx, m)
}

// authorize asks the broker's hook, as a publish would.
func (s *Scheduler) authorize(ctx context.Context, m *ferry.Message) error {
	hook := s.broker.Hooks().Authorize
	if hook == nil {
		return nil
	}
	return hook(ctx, ferry.Access{Topic: m.Topic, Message: m})
}

// passOver settles a tick whose message the broker will never take, without that message.
func (s *Scheduler) passOver(ctx context.Context, sub driver.Subscription, t *taken, cause error) error {
	if t.progress == nil {
		return cause
	}
	s.skip(ctx, t, cause)
	return errors.Join(sub.Settle(ctx, []driver.Settlement{t.settlement()})...)
}

// problem logs why a message was not published, and returns what is noted of it.
func (s *Scheduler) problem(ctx context.Context, name string, err error) string {
	const most = 500
	s.log.WarnContext(ctx, "a scheduled message was not published", "schedule", name, "error", err)
	text := err.Error()
	return text[:min(len(text), most)]
}

// lay publishes the message of a tick. Laid again it is a duplicate.
func (s *Scheduler) lay(ctx context.Context, d *definition, at time.Time) error {
	return repeated(ctx, func() error {
		_, err := s.driver.Publish(ctx, []*driver.Message{d.message(at)}, driver.PublishOptions{})
		return err
	})
}

// repeated does something again while its outcome is not known. It may be done twice.
func repeated(ctx context.Context, do func() error) (err error) {
	for range tries {
		if err = do(); !errors.Is(err, driver.ErrUnknown) || !sleep(ctx, 100*time.Millisecond) {
			return err
		}
	}
	return err
}
