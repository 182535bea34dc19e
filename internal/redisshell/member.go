package redisshell

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Token is a pointer to what a driver gives its deliveries.
type Token interface {
	comparable
	HeldBy(member any) bool   // whether a Member has received it
	Part() int                // where its message is,
	Place() string            // and what that part calls it
	Ended(now time.Time) bool // whether its lease has ended, by our clock; the lock of the Member is held
}

// Member is what a subscription is and has, whatever it claims from.
type Member[T Token] struct {
	Options driver.SubscribeOptions
	ID      string // as a member of the group
	Steps   [4]any // how far one claim moves each lane

	Mu    sync.Mutex // guards what follows
	Gate  Gate       // whether to claim
	Held  map[T]bool // what we believe to hold
	Begun map[T]bool // what has begun, held or not, until the server has heard of it again
}

// Join makes the member of a subscription with these options, or says why there can be none.
func (m *Member[T]) Join(ctx context.Context, refuse func() error, o driver.SubscribeOptions, c driver.Capabilities,
	id string) (err error) {
	if m.Options, err = o.Resolve(c); err == nil {
		err = refuse()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	m.ID, m.Steps, m.Gate = id, Steps(m.Options), NewGate(m.Options.MaxInflight)
	m.Held, m.Begun = map[T]bool{}, map[T]bool{}
	return nil
}

// Belongs reports whether it is of a topic, and of a group, if one is named.
func (m *Member[T]) Belongs(topic, group string) bool {
	return m.Options.Topic == topic && (group == "" || m.Options.Group == group)
}

// Announce tells waiting calls to look again.
func (m *Member[T]) Announce() {
	m.Mu.Lock()
	m.Gate.Announce()
	m.Mu.Unlock()
}

// End ends settling, too. It reports whether that is new.
func (m *Member[T]) End() bool {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.Gate.Close()
}

// Hold notes that deliveries are held.
func (m *Member[T]) Hold(ds []*driver.Delivery) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for _, d := range ds {
		m.Held[d.Token.(T)] = true
	}
}

// DropEnded forgets deliveries whose leases have ended by our clock, if there is no room. The lock is held.
func (m *Member[T]) DropEnded() {
	if m.Gate.Left(len(m.Held)) > 0 {
		return
	}
	now := time.Now()
	for t := range m.Held {
		if t.Ended(now) {
			delete(m.Held, t)
		}
	}
}

// TokenOf returns the token of a delivery that this member received.
func (m *Member[T]) TokenOf(d *driver.Delivery) (none T, _ error) {
	if err := d.Check(); err != nil {
		return none, err
	}
	t, ok := d.Token.(T)
	m.Mu.Lock()
	err := m.Gate.RefuseSettle()
	m.Mu.Unlock()
	switch {
	case err != nil:
		return none, err
	case !ok || !t.HeldBy(m):
		return none, d.Lost(nil)
	}
	return t, nil
}

// ByPart sorts deliveries that this member received, and notes what is wrong with the others.
func (m *Member[T]) ByPart(ds []*driver.Delivery, errs []error) map[int][]int {
	parts := map[int][]int{}
	for i, d := range ds {
		t, err := m.TokenOf(d)
		if errs[i] = err; err == nil {
			parts[t.Part()] = append(parts[t.Part()], i)
		}
	}
	return parts
}

// Judge notes what became of deliveries in a call: that it failed, or a letter for each: k is as it should be, s is to
// be settled otherwise, of any other the lease is lost. It calls each with the letters, 0 where nothing is known, under
// the lock.
func (m *Member[T]) Judge(run []int, letters string, err error, delivery func(int) *driver.Delivery, errs []error,
	each func(i int, t T, letter byte)) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for n, i := range run {
		d, letter := delivery(i), byte(0)
		if errs[i] = err; err == nil {
			letter = letters[n]
		}
		if letter != 0 && letter != 'k' && letter != 's' {
			errs[i] = d.Lost(nil)
		}
		each(i, d.Token.(T), letter)
	}
}

// Ended drops what was returned from a part together with others of its key.
func (m *Member[T]) Ended(part int, places []string, drop func(T)) {
	if len(places) == 0 {
		return
	}
	ended := map[string]bool{}
	for _, place := range places {
		ended[place] = true
	}
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for t := range m.Held {
		if t.Part() == part && ended[t.Place()] {
			drop(t)
		}
	}
}

// settlePatience bounds a settlement, which stands even when its caller gives up.
const settlePatience = 30 * time.Second

// Settle goes through settlements in order, and sends what is fit to be sent, as much as possible in one call. One with
// follow-ups is preceded by all before it; emit publishes them, and tells whether it was settled with them.
func (m *Member[T]) Settle(ctx context.Context, ss []driver.Settlement, maxBody int,
	emit func(ctx context.Context, x *driver.Settlement) (done bool, err error),
	send func(ctx context.Context, ss []driver.Settlement, run []int, errs []error, behind *refusal.Behind)) []error {
	errs := make([]error, len(ss))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settlePatience)
	defer cancel()
	run := make([]int, 0, len(ss)) // settlements that wait to be sent
	var behind refusal.Behind
	for i := range ss {
		x, done := &ss[i], false
		err := x.Check(maxBody)
		if err == nil {
			_, err = m.TokenOf(x.Delivery)
		}
		if err == nil && len(x.Emit) > 0 {
			send(ctx, ss, run, errs, &behind)
			run = run[:0]
		}
		if err == nil {
			err = behind.Refuse(x.Delivery)
		}
		if err == nil && len(x.Emit) > 0 {
			done, err = emit(ctx, x)
		}
		if errs[i] = err; err != nil {
			behind.Note(x.Delivery, err)
		} else if !done {
			run = append(run, i)
		}
	}
	send(ctx, ss, run, errs, &behind)
	return errs
}

// Behind sends settlements of one call, but for those that are behind what was not applied.
func Behind(ss []driver.Settlement, run []int, errs []error, behind *refusal.Behind, send func(run []int)) {
	run = slices.DeleteFunc(run, func(i int) bool {
		errs[i] = behind.Refuse(ss[i].Delivery)
		return errs[i] != nil
	})
	if len(run) > 0 {
		send(run)
	}
	for _, i := range run {
		behind.Note(ss[i].Delivery, errs[i])
	}
}
