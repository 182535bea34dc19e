package cluster

import (
	"context"
	"time"
)

// Pause waits between two looks at something that others change.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Every does something at intervals until ctx ends, first after one of them.
func Every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
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
