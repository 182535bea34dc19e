package remote

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// watch hands to Revoking what the broker takes away, where that can happen: where a group shares partitions. The calls
// also tell the gateway that this process lives, so that it keeps its partitions while it holds nothing.
func (s *subscription) watch() {
	if !s.revocable() {
		return
	}
	s.watcher.Go(func() {
		for !s.isClosed() {
			s.await()
		}
	})
}

// note keeps a delivery, for Revoking. The lock is held.
func (s *subscription) note(handle uint64, d *driver.Delivery) {
	if s.revocable() {
		s.held[handle] = d
	}
}

// forget drops what has been settled.
func (s *subscription) forget(ss []driver.Settlement, errs []error) {
	if !s.revocable() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range ss {
		if errs[i] == nil {
			delete(s.held, ss[i].Delivery.Token.(*token).handle) // one without was refused
		}
	}
}

// revocable reports whether the broker takes deliveries away: where a group shares partitions.
func (s *subscription) revocable() bool { return s.d.caps.Parallel == driver.ParallelPerPartition }

func (s *subscription) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// await waits for one revocation. A gateway that is away is asked again after a second.
func (s *subscription) await() {
	ctx, cancel := context.WithCancel(s.d.client.Life())
	defer cancel()
	go func() {
		select {
		case <-s.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	var r frame.Revoked
	err := s.d.look(ctx, frame.CallRevoked, &frame.Session{ID: s.current()}, &r)
	if err != nil {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		return
	}
	if ds := s.heldOf(r.Handles); len(ds) > 0 && s.o.Revoking != nil {
		within, end := context.WithTimeout(ctx, r.Within)
		defer end()
		s.o.Revoking(within, ds)
	}
}

func (s *subscription) heldOf(handles []uint64) []*driver.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ds []*driver.Delivery
	for _, h := range handles {
		if d := s.held[h]; d != nil {
			ds = append(ds, d)
			delete(s.held, h)
		}
	}
	return ds
}
