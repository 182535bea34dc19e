package cluster

import (
	"context"
	"time"
)

// Pause waits between two looks at something that others change, or before what is done at intervals.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Signal lets one goroutine look again. Given twice before that, it is received once.
type Signal chan struct{}

// NewSignal is one that is not given.
func NewSignal() Signal { return make(Signal, 1) }

// Give never waits.
func (s Signal) Give() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// Each does something whenever the signal was given, until ctx ends.
func (s Signal) Each(ctx context.Context, do func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s:
			do()
		}
	}
}

// Rounds does something until ctx ends: again after as long as it says, or when the signal is given.
func (s Signal) Rounds(ctx context.Context, round func() time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(max(0, round()))
		select {
		case <-ctx.Done():
			return
		case <-s:
		case <-timer.C:
		}
	}
}
