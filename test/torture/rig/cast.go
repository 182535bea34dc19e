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
	// mayEnd says that a process may end with an error.
	mayEnd bool

	mu     sync.Mutex
	failed error // why some life could not be started, or ended badly
}

type slot struct {
	role   string
	number int

	mu       sync.Mutex
	life     int
	current  process
	leaving  chan struct{}       // closed when no other life is to follow, or only a last one
	farewell func(process) error // said to a life when it is to end; nil before that
	last     bool                // the farewell has not been heard: one more life follows
	occupied chan struct{}       // closed when the first life has begun
	left     chan struct{}       // closed when the last one is over
}

func newCast(s stage, log *history.Writer, o Options, b broker) *cast {
	c := &cast{stage: s, log: log, seed: o.Seed, slots: map[string][]*slot{}, mayEnd: o.Fault.MayEnd}
	for _, role := range b.roles {
		for i := range b.count(o)[role] {
			c.slots[role] = append(c.slots[role], &slot{role: role, number: i + 1, leaving: make(chan struct{}),
				occupied: make(chan struct{}), left: make(chan struct{})})
		}
	}
	if b.owned { // the consumers live in the app
		c.slots[consumer] = c.slots[app]
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
	defer close(s.left)
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
		if err := p.err(); err != nil && !c.mayEnd {
			c.fail(fmt.Errorf("%s: %w", name, err))
		}
		timer := time.NewTimer(restartAfter)
		select {
		case <-s.leaving:
			timer.Stop()
			if !s.onceMore() {
				return
			}
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
	if err == nil && s.farewell != nil { // asked to leave between two lives
		s.last = false
		err = s.farewell(p)
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
	if !s.alive() {
		return nil, ""
	}
	return s.current, s.name()
}

// dismiss asks every process of a role to end, and starts no other.
func (c *cast) dismiss(role string) { c.sayFarewell(role, process.terminate, false) }

// errEnding is a process that was told to end before: it does not hear a farewell any more.
var errEnding = errors.New("the process ends already")

// sayFarewell asks every process of a role to end in its own way. Where none lives, or the one that does ends already,
// one more is started if it must hear it.
func (c *cast) sayFarewell(role string, farewell func(process) error, heard bool) {
	for _, s := range c.slots[role] {
		if err := s.leave(farewell, heard); err != nil {
			c.fail(err)
		}
	}
}

func (s *slot) leave(farewell func(process) error, heard bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.farewell == nil {
		s.last = heard && !s.alive()
		close(s.leaving)
	}
	s.farewell = farewell
	if !s.alive() {
		return nil
	}
	err := farewell(s.current)
	if errors.Is(err, errEnding) {
		s.last = heard
		return nil
	}
	return err
}

// onceMore says whether a last life is to follow although the slot is being left.
func (s *slot) onceMore() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// alive says whether the life of the moment goes on. s.mu is held.
func (s *slot) alive() bool {
	if s.current == nil {
		return false
	}
	select {
	case <-s.current.done():
		return false
	default:
		return true
	}
}

// gone waits until the last life of every process of a role is over.
func (c *cast) gone(ctx context.Context, role string) error {
	for _, s := range c.slots[role] {
		select {
		case <-s.left:
		case <-ctx.Done():
			s.mu.Lock()
			name := s.name()
			s.mu.Unlock()
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
