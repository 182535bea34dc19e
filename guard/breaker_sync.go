package guard

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/guard/store"
)

// breakerSync tells the store about the breakers of this process, and learns which states operators force. Messages do
// that on their way, one of them each second: without messages there is nothing to obey.
type breakerSync struct {
	b        *Breaker
	epoch    time.Time
	next     atomic.Int64 // when the store is asked again, since epoch
	instance string

	mu     sync.Mutex
	forced map[string]State
}

const syncEvery = 500 * time.Millisecond

func newBreakerSync(b *Breaker) *breakerSync {
	s := &breakerSync{b: b, epoch: time.Now(), instance: b.o.Instance, forced: map[string]State{}}
	if s.instance == "" {
		s.instance = rand.Text()[:8]
	}
	return s
}

// hurry has the next message report: a state has changed.
func (s *breakerSync) hurry() {
	if s != nil {
		s.next.Store(0)
	}
}

// refresh asks the store if it is time to. Whoever comes first asks; the others go on.
func (s *breakerSync) refresh(ctx context.Context) {
	if s.b.o.Store == nil {
		return
	}
	due := s.next.Load()
	now := int64(time.Since(s.epoch))
	if now < due || !s.next.CompareAndSwap(due, now+int64(syncEvery)) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncEvery)
	defer cancel()
	forced, err := s.b.o.Store.Report(ctx, s.instance, s.b.Status())
	if err != nil {
		s.b.failures.Add(1)
		s.next.Store(now + int64(5*time.Second)) // it waited for it once; what is forced stays so
		s.b.o.Hook.tell(ctx, Event{Kind: EventStoreFailed, Layer: layerBreaker, Name: s.b.o.Name, Err: err})
		return
	}
	s.obey(forced)
}

func (s *breakerSync) obey(forced []store.Forced) {
	wanted := make(map[string]State, len(forced))
	for _, f := range forced {
		wanted[f.Name] = f.State
	}
	s.mu.Lock()
	s.forced = wanted
	s.mu.Unlock()
	s.b.mu.RLock()
	defer s.b.mu.RUnlock()
	for name, c := range s.b.circuits {
		c.force(wanted[name])
	}
}

func (s *breakerSync) wanted(name string) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forced[name]
}

// Status returns the state of the breakers in this process, at most 1,000 of them; those that are not closed first.
func (b *Breaker) Status() []BreakerStatus {
	b.mu.RLock()
	all := make([]BreakerStatus, 0, len(b.circuits))
	for _, c := range b.circuits {
		all = append(all, c.status(b.sync.instance))
	}
	b.mu.RUnlock()
	slices.SortFunc(all, func(x, y BreakerStatus) int {
		if (x.State == StateClosed) != (y.State == StateClosed) {
			if x.State == StateClosed {
				return 1
			}
			return -1
		}
		return strings.Compare(x.Name, y.Name)
	})
	return all[:min(len(all), reportsBound)]
}

func (c *circuit) status(instance string) BreakerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn() // an open one whose time is over becomes half open when it is asked
	s := BreakerStatus{
		Name: c.name, Instance: instance, State: c.state, Since: c.since, Seen: time.Now(), Requests: c.counts.requests,
		Failures: c.counts.failures, InARow: c.counts.failuresInARow, Successes: c.counts.successes,
	}
	if c.forced != "" {
		s.State, s.Forced = c.forced, true
	}
	return s
}

// Force makes a breaker open or closed in this process until it is given another state, or "" to leave it to itself.
// With a Store, use Admin.ForceBreaker: it reaches all processes, and is audited.
func (b *Breaker) Force(name string, state State) error {
	if err := checkForced(state); err != nil {
		return err
	}
	c := b.named(name)
	if c == nil {
		return errManyBreakers
	}
	s := b.sync
	s.mu.Lock()
	if state == "" {
		delete(s.forced, name)
	} else {
		s.forced[name] = state
	}
	s.mu.Unlock()
	c.force(state)
	return nil
}
