package worker

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/unique"
)

// Emit publishes a follow-up together with the acknowledgement of the message being handled: only if the handler
// succeeds, and no later than that takes effect. Its id derives from that message's unless ferry.ID gives one, so that
// handling the message again does not publish it twice. A follow-up that is ferry.Unique claims its id at once, and
// gives it back if the handler fails. The context must be that of a handler of single messages.
func Emit[T any](ctx context.Context, topic string, value T, opts ...ferry.PublishOption) error {
	r, ok := ctx.Value(runKey{}).(*run)
	switch {
	case !ok:
		return driver.NewError(ferry.ErrInvalid, "Emit outside a handler",
			"give it the handler's context, or use ferry.Publish", nil)
	case r.batch != nil:
		return driver.NewError(ferry.ErrUnsupported, "Emit in a batch handler, where no single message is handled",
			"use ferry.Publish, with ferry.ID to make a repeat harmless", nil)
	}
	m, err := ferry.NewMessage(ctx, r.c.e.broker, topic, value, opts...)
	if err != nil {
		return err
	}
	if err := r.emits.name(r, m); err != nil {
		return err
	}
	if r.c.e.hooks.Publishing != nil {
		ctx = r.c.e.hooks.Publishing(ctx, m)
	}
	if err := r.c.e.mayEmit(ctx, m); err != nil {
		return err
	}
	if err := r.c.e.broker.ApplyFilters(ctx, m); err != nil {
		return err
	}
	return r.emit(ctx, m)
}

// mayEmit checks a follow-up as a publish would.
func (e *engine) mayEmit(ctx context.Context, m *ferry.Message) error {
	if err := driver.CheckTopic(m.Topic); err != nil {
		return err
	}
	if err := m.Validate(e.caps.MaxBody); err != nil {
		return err
	}
	if e.hooks.Authorize == nil {
		return nil
	}
	return e.hooks.Authorize(ctx, ferry.Access{Topic: m.Topic, Message: m})
}

// emission collects the follow-ups of one run. The handler may emit from several goroutines.
type emission struct {
	list atomic.Pointer[emitted] // made by the first Emit
}

type emitted struct {
	mu     sync.Mutex
	msgs   []*driver.Message
	claims []uniqueEmit
	issued int // ids, those of follow-ups that were refused later included
	taken  bool
}

// uniqueEmit is a follow-up that has claimed its unique id.
type uniqueEmit struct {
	id  *unique.Claim
	msg *driver.Message
}

// noEmission is the list of a run that ended without any. It is never changed.
var noEmission = &emitted{taken: true}

// emit adds a follow-up that was checked.
func (r *run) emit(ctx context.Context, m *driver.Message) error {
	if m.Unique == nil {
		return r.emits.add(m, nil)
	}
	names := r.c.e.names
	claim := names.Claim(ctx, []*driver.Message{m}, 0)[0]
	if claim.Err != nil {
		return claim.Err
	}
	err := r.emits.add(m, claim)
	if err != nil {
		names.Undo(ctx, claim)
	}
	return err
}

var errEmitLate = driver.NewError(ferry.ErrInvalid, "Emit after the handler returned",
	"wait for goroutines that emit", nil)

// name gives a follow-up its id.
func (em *emission) name(r *run, m *driver.Message) error {
	l := em.list.Load()
	if l == nil {
		em.list.CompareAndSwap(nil, new(emitted))
		l = em.list.Load()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken {
		return errEmitLate
	}
	if m.ID == "" {
		// With the group, because each group of a topic emits for itself.
		m.ID = driver.EmitID(r.d.Topic+"/"+r.d.Group+"/"+r.d.ID, l.issued)
	}
	l.issued++
	m.OwnID = true
	return nil
}

// add adds a follow-up that has its id.
func (em *emission) add(m *driver.Message, claim *unique.Claim) error {
	l := em.list.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken {
		return errEmitLate
	}
	l.msgs = append(l.msgs, m)
	if claim != nil {
		l.claims = append(l.claims, uniqueEmit{claim, m})
	}
	return nil
}

// claimed returns the follow-ups that are unique.
func (em *emission) claimed() []uniqueEmit {
	l := em.list.Load()
	if l == nil || l == noEmission {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.claims
}

// take returns the follow-ups and refuses further ones.
func (em *emission) take() []*driver.Message {
	if em.list.CompareAndSwap(nil, noEmission) {
		return nil
	}
	l := em.list.Load()
	if l == noEmission {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken = true
	return l.msgs
}
