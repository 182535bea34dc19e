package drivertest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
)

// workers runs one consumer for each subscription until n deliveries were settled for good: acked, dropped or dead.
// The handler says how each one ends.
func (t *T) workers(subs []*sub, n int, handle func(*sub, *driver.Delivery) driver.Outcome) {
	t.Helper()
	ctx, stop := context.WithCancel(t.ctx())
	defer stop()
	var left atomic.Int64
	left.Store(int64(n))
	var running sync.WaitGroup
	for _, s := range subs {
		running.Go(func() {
			for {
				ds, err := s.Receive(ctx, 4)
				if err != nil {
					return
				}
				for _, d := range ds {
					x := driver.Settlement{Delivery: d, Outcome: handle(s, d)}
					err := s.Settle(t.Context(), []driver.Settlement{x})[0]
					final := x.Outcome == driver.Ack || x.Outcome == driver.Drop || x.Outcome == driver.Dead
					if err == nil && final && left.Add(-1) <= 0 {
						stop()
					}
				}
			}
		})
	}
	running.Wait()
	if l := left.Load(); l > 0 {
		t.Fatalf("%d of %d messages were never settled", l, n)
	}
}
