package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// sessions are those of all clients.
type sessions struct {
	log *slog.Logger

	mu     sync.Mutex
	byID   map[string]*session
	shared map[sharing]*session
	closed bool
	ending sync.WaitGroup // of sessions that were idle
}

func newSessions(log *slog.Logger) *sessions {
	return &sessions{log: log, byID: map[string]*session{}, shared: map[sharing]*session{}}
}

// minIdle is the least time after which a session of which nothing is heard ends.
const minIdle = 10 * time.Second

// idleAfter is when a session ends of which nothing is heard. Whatever it held was lost before.
func (s *session) idleAfter() time.Duration { return max(2*s.o.Lease, minIdle) }

// open subscribes for a client.
func (x *sessions) open(ctx context.Context, d driver.Driver, owner string, o driver.SubscribeOptions) (*session,
	error) {
	o, err := o.Resolve(d.Capabilities())
	if err != nil {
		return nil, err
	}
	s := &session{id: rand.Text(), owner: owner, o: o, held: newHoldings(), revoked: make(chan revocation, 1)}
	if d.Capabilities().Parallel == driver.ParallelPerPartition { // with a partition goes what is held of it
		s.handles, o.Revoking = map[string]uint64{}, s.revoking
	}
	if s.sub, err = d.Subscribe(ctx, o); err != nil {
		return nil, err
	}
	if err := x.add(s); err != nil {
		return nil, errors.Join(err, s.sub.Close(ctx))
	}
	return s, nil
}

func (x *sessions) add(s *session) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errStopping()
	}
	x.byID[s.id] = s
	s.idle = time.AfterFunc(s.idleAfter(), func() { x.expire(s) })
	return nil
}

func errStopping() error {
	return driver.NewError(driver.ErrNotApplied, "the gateway is stopping", "try again, at another one if there is", nil)
}

// use returns the session of a client, which is not idle until done is called. ErrNotFound if there is none.
func (x *sessions) use(id, owner string) (s *session, done func(), err error) {
	x.mu.Lock()
	s = x.byID[id]
	x.mu.Unlock()
	if s == nil || s.owner != owner || !s.busy() {
		return nil, nil, driver.NewError(driver.ErrNotFound, "the gateway has no such subscription", "subscribe again",
			frame.ErrNoSession)
	}
	return s, s.free, nil
}

// sharing is what requests have in common that use one session.
type sharing struct {
	owner, topic, group string
	lease               time.Duration
}

// share returns the session for requests that come one by one, which is not idle until done is called. The first of
// them opens it.
func (x *sessions) share(ctx context.Context, d driver.Driver, owner string, o driver.SubscribeOptions) (s *session,
	done func(), err error) {
	by := sharing{owner: owner, topic: o.Topic, group: o.Group, lease: o.Lease}
	x.mu.Lock()
	s = x.shared[by]
	x.mu.Unlock()
	if s != nil && s.busy() {
		return s, s.free, nil
	}
	if s, err = x.open(ctx, d, owner, o); err != nil {
		return nil, nil, err
	}
	x.mu.Lock()
	x.shared[by], s.by = s, by
	x.mu.Unlock()
	if !s.busy() {
		return nil, nil, errStopping()
	}
	return s, s.free, nil
}

// busy says that a call of the session is under way. It reports false if the session has ended.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.calls++
	s.idle.Stop()
	return true
}

func (s *session) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls--; s.calls == 0 && !s.ended {
		s.idle.Reset(s.idleAfter())
	}
}

// expire ends a session whose client has not been heard of for long.
func (x *sessions) expire(s *session) {
	s.mu.Lock()
	idle := s.calls == 0 && !s.ended
	s.ended = s.ended || idle
	s.mu.Unlock()
	if !idle || !x.remove(s) {
		return
	}
	defer x.ending.Done()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := s.sub.Close(ctx); err != nil {
		x.log.Warn("ferry: the subscription of a client that is gone was not closed", "topic", s.o.Topic, "group", s.o.Group,
			"instance", s.o.Instance, "error", err)
	}
}

// closeTimeout bounds the end of a session that nobody waits for.
const closeTimeout = 10 * time.Second

// remove reports whether the session was still there. If so, ending waits until its Done.
func (x *sessions) remove(s *session) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byID[s.id] != s || x.closed {
		return false
	}
	delete(x.byID, s.id)
	if x.shared[s.by] == s {
		delete(x.shared, s.by)
	}
	x.ending.Add(1)
	return true
}

// end closes the session of a client that says so.
func (x *sessions) end(ctx context.Context, s *session) error {
	s.mu.Lock()
	s.ended = true
	s.idle.Stop()
	s.mu.Unlock()
	if x.remove(s) {
		defer x.ending.Done()
	}
	return s.sub.Close(ctx)
}

// close ends all sessions.
func (x *sessions) close(ctx context.Context) error {
	x.mu.Lock()
	x.closed = true
	all := x.byID
	x.byID = map[string]*session{}
	x.mu.Unlock()
	var errs []error
	for _, s := range all {
		s.mu.Lock()
		s.ended = true
		s.idle.Stop()
		s.mu.Unlock()
		errs = append(errs, s.sub.Close(ctx))
	}
	x.ending.Wait()
	return errors.Join(errs...)
}
