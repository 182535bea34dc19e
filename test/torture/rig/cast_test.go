package rig

import (
	"context"
	"errors"
	"testing"
)

// lives is a stage whose processes end when they are told to, and hear nothing else by then.
type lives struct {
	stage
	begun chan *life
}

type life struct {
	process
	over    chan struct{}
	ending  bool
	drained bool
}

func (s *lives) start(context.Context, string, uint64, string) (process, error) {
	p := &life{over: make(chan struct{})}
	s.begun <- p
	return p, nil
}

func (p *life) done() <-chan struct{} { return p.over }
func (p *life) err() error            { return nil }

func (p *life) drain() error {
	if p.ending {
		return errEnding
	}
	p.drained = true
	close(p.over)
	return nil
}

// TestWhoEndsHearsNoFarewell lets a run end while its process ends by a fault: what must be heard is said to the next
// life.
func TestWhoEndsHearsNoFarewell(t *testing.T) {
	s := &lives{begun: make(chan *life, 2)}
	c := newCast(s, nil, Options{}, broker{roles: []string{app}, owned: true})
	c.raise(t.Context(), app)
	first := <-s.begun
	first.ending = true
	c.sayFarewell(app, func(p process) error { return p.(*life).drain() }, true)
	close(first.over)
	c.keep.Wait()
	if err := errors.Join(c.failure(), c.gone(t.Context(), app)); err != nil {
		t.Fatal(err)
	}
	select {
	case last := <-s.begun:
		if !last.drained || first.drained {
			t.Error("the farewell was not heard by the last life")
		}
	default:
		t.Error("no other life was started")
	}
}
