package server

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"sync"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// streams are answers that last. When the server stops those without an end are told so, while other requests may
// finish.
type streams struct {
	mu      sync.Mutex
	open    map[*request]stream
	stopped bool
}

// stream is an answer that lasts.
type stream struct {
	endless  bool
	cancel   func()
	identify func() (*auth.Identity, error) // who asks, as of now
}

// add notes a stream. One without an end that begins while the server stops ends at once.
func (s *streams) add(n *request, x stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped && x.endless {
		x.cancel()
		return
	}
	if s.open == nil {
		s.open = map[*request]stream{}
	}
	s.open[n] = x
}

func (s *streams) remove(n *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, n)
}

// stop ends all streams that have no end.
func (s *streams) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, x := range s.open {
		if x.endless {
			x.cancel()
		}
	}
}

// streamCheck is how often it is asked whether who reads a stream still is who they were when it began.
const streamCheck = 5 * time.Second

// check ends streams until ctx ends: those whose credentials are no longer good, or good for something else.
func (s *streams) check(ctx context.Context) {
	tick := time.NewTicker(streamCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		open := maps.Clone(s.open)
		s.mu.Unlock()
		for n, x := range open { // without the lock: the broker is asked
			if n.who != nil && over(n.who, x.identify) {
				x.cancel()
			}
		}
	}
}

// over reports whether who asked has other rights by now, or none. While the broker does not tell, they keep them.
func over(who *auth.Identity, identify func() (*auth.Identity, error)) bool {
	now, err := identify()
	if err != nil {
		return errors.Is(err, driver.ErrRefused)
	}
	return !reflect.DeepEqual(now, who)
}
