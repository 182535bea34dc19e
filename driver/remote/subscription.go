package remote

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/framecall"
)

// subscription is one that a gateway holds for this process.
type subscription struct {
	d *Driver
	o driver.SubscribeOptions

	turn chan struct{} // of the one Receive that asks the gateway
	over chan struct{} // closed by Close

	mu      sync.Mutex
	session string // at the gateway
	number  uint64 // of the last receive
	got     uint64 // of the last one whose answer arrived
	held    map[uint64]*driver.Delivery
	drained bool
	closed  bool

	watcher sync.WaitGroup // of revocations
}

// token is a handle of a session.
type token struct {
	session string
	handle  uint64
}

// String differs for each delivery: a session is never made again, and counts its handles.
func (t *token) String() string { return t.session + "." + strconv.FormatUint(t.handle, 36) }

// Subscribe joins a group.
func (d *Driver) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	o, err := o.Resolve(d.caps)
	if err != nil {
		return nil, err
	}
	s := &subscription{d: d, o: o, turn: make(chan struct{}, 1), over: make(chan struct{})}
	if err := s.join(ctx); err != nil {
		return nil, err
	}
	if !d.add(s) {
		_ = s.Close(ctx)
		return nil, framecall.ErrClosed(nil)
	}
	s.watch()
	return s, nil
}

// add notes a subscription, for Close.
func (d *Driver) add(s *subscription) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.subs[s] = struct{}{}
	return true
}

// join makes a session at the gateway. What an earlier one held is lost.
func (s *subscription) join(ctx context.Context) error {
	var session frame.Session
	if err := s.d.change(ctx, frame.CallSubscribe, &frame.Subscribe{Options: s.o}, &session); err != nil {
		return err
	}
	s.mu.Lock()
	s.session, s.number, s.got, s.held = session.ID, 0, 0, map[uint64]*driver.Delivery{}
	s.mu.Unlock()
	return nil
}

// Receive waits for deliveries. Callers ask the gateway one after the other.
func (s *subscription) Receive(ctx context.Context, most int) ([]*driver.Delivery, error) {
	if err := driver.CheckMax(most); err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.over:
		return nil, errEnded("closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		if err := s.ended(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ds, err := s.poll(ctx, most)
		if errors.Is(err, frame.ErrNoSession) { // the gateway was restarted, or has not heard of us for long
			err = s.join(ctx)
		}
		if len(ds) > 0 {
			return ds, nil
		}
		if err != nil {
			return nil, s.whyNot(ctx, err)
		}
	}
}

// whyNot is the error of a Receive: contexts' own come bare.
func (s *subscription) whyNot(ctx context.Context, err error) error {
	if ended := s.ended(); ended != nil {
		return ended
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// ended is why nothing is received any more, or nil.
func (s *subscription) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errEnded("closed")
	case s.drained:
		return errEnded("drained")
	}
	return nil
}

func errEnded(how string) error {
	return driver.NewError(driver.ErrClosed, "the subscription is "+how, "subscribe again", nil)
}

// stopTimeout is how long the end of a wait may take. A gateway that is away does not hold a cancelled Receive up for
// longer.
const stopTimeout = time.Second

// poll asks once. When ctx ends it asks the gateway to end the wait, so that no claim is made after Receive has
// returned; what was claimed by then still comes.
func (s *subscription) poll(ctx context.Context, most int) ([]*driver.Delivery, error) {
	s.mu.Lock()
	s.number++
	q := &frame.Receive{Session: s.session, Number: s.number, Got: s.got, Max: most}
	s.mu.Unlock()
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopped := make(chan struct{})
	keep := context.AfterFunc(ctx, func() {
		defer close(stopped)
		s.stop(waiting, q, cancel)
	})
	var answer frame.Deliveries
	sent := time.Now()
	err := s.d.look(waiting, frame.CallReceive, q, &answer)
	cancel() // what stops it, too
	if !keep() {
		<-stopped
	}
	if err != nil {
		return nil, err
	}
	return s.take(q, &answer, sent), nil
}

// stop ends the wait of a receive at the gateway, and gives its answer a moment to arrive.
func (s *subscription) stop(waiting context.Context, q *frame.Receive, cancel context.CancelFunc) {
	ctx, end := context.WithTimeout(waiting, stopTimeout)
	defer end()
	defer cancel()
	if err := s.d.look(ctx, frame.CallStop, &frame.Receive{Session: q.Session, Number: q.Number},
		&frame.Nothing{}); err == nil {
		<-ctx.Done()
	}
}

// take notes what an answer has brought.
func (s *subscription) take(q *frame.Receive, answer *frame.Deliveries, sent time.Time) []*driver.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = q.Number
	ds, tokens := make([]*driver.Delivery, 0, len(answer.Deliveries)), make([]token, len(answer.Deliveries))
	for i := range answer.Deliveries {
		a := &answer.Deliveries[i]
		if a.Message == nil {
			continue // which no gateway sends
		}
		tokens[i] = token{session: q.Session, handle: a.Handle}
		d := a.Delivery
		d.Token, d.LeaseUntil = &tokens[i], sent.Add(answer.Served+a.Left)
		ds = append(ds, d)
		s.note(a.Handle, d)
	}
	return ds
}

// Drain says that Receive is not called again.
func (s *subscription) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.drained = true
	session := s.session
	s.mu.Unlock()
	return gone(s.d.change(ctx, frame.CallDrain, &frame.Session{ID: session}, &frame.Nothing{}))
}

// Close releases what is held, and leaves the group.
func (s *subscription) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	session := s.session
	s.mu.Unlock()
	close(s.over)
	s.d.mu.Lock()
	delete(s.d.subs, s)
	s.d.mu.Unlock()
	err := s.d.client.Call(ctx, frame.CallClose, &frame.Session{ID: session}, &frame.Nothing{}, driver.ErrUnknown)
	s.watcher.Wait()
	return gone(err)
}

// gone is the error of ending a session: nil if the gateway does not know it any more.
func gone(err error) error {
	if errors.Is(err, frame.ErrNoSession) {
		return nil
	}
	return err
}
