package server

import "sync"

// streams are answers without an end. When the server stops they are told so, while other requests may finish.
type streams struct {
	mu      sync.Mutex
	open    map[*request]func()
	stopped bool
}

// add notes a stream and how it is ended. One that begins while the server stops ends at once.
func (s *streams) add(n *request, cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		cancel()
		return
	}
	if s.open == nil {
		s.open = map[*request]func(){}
	}
	s.open[n] = cancel
}

func (s *streams) remove(n *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, n)
}

// stop ends all streams.
func (s *streams) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	for _, cancel := range s.open {
		cancel()
	}
}
