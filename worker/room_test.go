package worker

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
)

// crowd is an engine with consumers of which nothing runs but what a test does with them.
func crowd(rnd *rand.Rand) *engine {
	e := &engine{epoch: time.Now().Add(-time.Minute)}
	e.pool.limit = 1 + rnd.IntN(8)
	e.watch.kick = make(chan struct{}, 1)
	e.watch.next = never
	for range 1 + rnd.IntN(12) {
		c := &consumer{e: e, handlerSettings: handlerSettings{batchSize: 1}}
		if rnd.IntN(3) == 0 {
			c.batch, c.batchSize = func(context.Context, []*ferry.Delivery) []error { return nil }, 1+rnd.IntN(5)
		}
		c.intake.wake = sync.NewCond(&e.mu)
		e.consumers = append(e.consumers, c)
	}
	return e
}

// shake changes one consumer, or how many slots there are, as a worker may.
func shake(rnd *rand.Rand, e *engine) {
	c := e.consumers[rnd.IntN(len(e.consumers))]
	switch rnd.IntN(9) {
	case 0: // deliveries came
		c.lanes.ready.n += rnd.IntN(4)
		c.intake.asked = 0
	case 1: // one starts
		if c.lanes.ready.n > 0 && e.active < e.pool.limit && c.inUse < c.limit {
			c.lanes.ready.n--
			c.inUse++
			e.active++
		}
	case 2: // one ends
		if c.inUse > 0 {
			c.inUse--
			e.active--
			c.pace.prefetch = rnd.IntN(8)
			c.pace.shared = c.pace.prefetch / (1 + rnd.IntN(4))
		}
	case 3:
		c.lanes.queued = rnd.IntN(4)
	case 4:
		c.quiet = !c.quiet
	case 5:
		c.pace.body = rnd.IntN(2) * prefetchBytes
	case 6: // it fetches, or waits for room
		if !c.intake.parked {
			c.intake.asked = 0
			c.reckon()
			if c.roomBeside() > 0 {
				c.ask()
			} else {
				c.park()
			}
		}
	case 7: // its hunger ends
		if c.intake.asked > 0 {
			c.intake.asked = -appetite
		}
	default:
		e.pool.limit = 1 + rnd.IntN(8)
		for _, c := range e.consumers {
			c.limit = e.pool.limit
		}
		e.makeRoom()
	}
	c.makeRoom()
}

// TestSumsFollow: what all consumers want is summed up as they change, and a fetcher that waits has no room as if all
// had been asked.
func TestSumsFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, sumsFollow) // no hunger ends unasked
}

func sumsFollow(t *testing.T) {
	for range 300 {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 1))
		e := crowd(rnd)
		for _, c := range e.consumers {
			c.limit = e.pool.limit
		}
		e.makeRoom()
		for step := range 200 {
			shake(rnd, e)
			var want demand
			for _, c := range e.consumers {
				want = want.plus(c.demand())
			}
			if e.wants != want {
				t.Fatalf("seed %d, step %d: the sum is %+v, not %+v", seed, step, e.wants, want)
			}
			for i, c := range e.consumers {
				hungry := c.wants.hungry == 1 && c.held() > 0 && e.unpromised() <= 0 // which looks for itself
				if c.intake.parked && !hungry && c.roomBeside() > 0 {
					t.Fatalf("seed %d, step %d: consumer %d waits at gate %+v with room for %d", seed, step, i, c.intake.gate,
						c.roomBeside())
				}
			}
		}
	}
}
