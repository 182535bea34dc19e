package rig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// restartAfter is how long a process that ended stays away.
const restartAfter = 200 * time.Millisecond

// cast keeps one process alive in each slot: one that ends is followed by another life.
type cast struct {
	stage stage
	log   *history.Writer
	seed  uint64
	slots map[string][]*slot // by role
	keep  sync.WaitGroup

	mu     sync.Mutex
	failed error // why some life could not be started, or ended badly
}

type slot struct {
	role   string
	number int

	mu       sync.Mutex
	life     int
	current  process
	leaving  chan struct{} // closed when no other life is to follow
	ending   bool
	occupied chan struct{} // closed when the first life has begun
}

func newCast(s stage, log *history.Writer, seed uint64, count map[string]int) *cast {
	c := &cast{stage: s, log: log, seed: seed, slots: map[string][]*slot{}}
	for role, n := range count {
		for i := range n {
			c.slots[role] = append(c.slots[role], &slot{role: role, number: i + 1, leaving: make(chan struct{}), occupied: make(chan struct{})})
		}
	}
	return c
}

// raise starts every process of a role, and returns when each has begun.
func (c *cast) raise(ctx context.Context, role string) {
	for _, s := range c.slots[role] {
		c.keep.Go(func() { c.keepAlive(ctx, s) })
	}
	for _, s := range c.slots[role] {
		<-s.occupied
	}
}

func (c *cast) keepAlive(ctx context.Context, s *slot) {
	for {
		p, name, err := c.begin(ctx, s)
		if s.lives() == 1 {
			close(s.occupied)
		}
		if err != nil {
			c.fail(err)
			return
		}
		<-p.done()
		if err := p.err(); err != nil {
			c.fail(fmt.Errorf("%s: %w", name, err))
		}
		timer := time.NewTimer(restartAfter)
		select {
		case <-s.leaving:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (c *cast) begin(ctx context.Context, s *slot) (process, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life++
	name := s.name()
	seed := c.seed<<16 ^ uint64(s.number)<<8 ^ uint64(s.life)
	p, err := c.stage.start(ctx, s.role, seed, name)
	s.current = p
	if err == nil && s.ending { // asked to leave between two lives
		err = p.terminate()
	}
	return p, name, err
}

func (s *slot) lives() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life
}

// name tells role, number and life. s.mu is held.
func (s *slot) name() string { return fmt.Sprintf("%s-%d.%d", s.role, s.number, s.life) }

// now returns the life of the moment, nil if it is over.
func (s *slot) now() (process, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return nil, ""
	}
	select {
	case <-s.current.done():
		return nil, ""
	default:
		return s.current, s.name()
	}
}

// dismiss asks every process of a role to end, and starts no other.
func (c *cast) dismiss(role string) {
	for _, s := range c.slots[role] {
		s.mu.Lock()
		if !s.ending {
			s.ending = true
			close(s.leaving)
		}
		if s.current != nil {
			if err := s.current.terminate(); err != nil {
				c.fail(err)
			}
		}
		s.mu.Unlock()
	}
}

// gone waits until the last life of every process of a role is over.
func (c *cast) gone(ctx context.Context, role string) error {
	for _, s := range c.slots[role] {
		s.mu.Lock()
		p, name := s.current, s.name()
		s.mu.Unlock()
		if p == nil {
			continue
		}
		select {
		case <-p.done():
		case <-ctx.Done():
			return fmt.Errorf("%s does not end: %w", name, context.Cause(ctx))
		}
	}
	return nil
}

func (c *cast) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, err)
}

func (c *cast) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}
