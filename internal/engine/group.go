package engine

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// group gets every message that became ready after it was created. It is guarded by the lock of its topic.
type group struct {
	t *topic
	groupRecord
	leaving bool // is being deleted: nobody joins

	queue   scheduler.Queue[item]
	ready   readyTimes
	behind  scheduler.Waiting[item] // ready, and behind something cold: up to which place
	cold    int64                   // ready messages that are in the store only
	normal  int                     // ready items of the normal lane, in memory
	graves  sequence[item]          // dead letters, in the order in which they died
	members []*subscription

	waiters waiter // stands for the group in the ring of those who wait
	offers  int    // made since the last wake-up

	count [done + 1]int64 // items by state; gone and done are not kept exact
}

// open makes a group of which only the record is there one of a topic.
func (g *group) open(t *topic) {
	g.t, g.behind, g.queue = t, scheduler.NewWaiting[item](), scheduler.New[item](g.wakeLater)
	g.waiters.prev, g.waiters.next = &g.waiters, &g.waiters
}

// wakeLater notes that one more item can be claimed; unlocking the topic wakes somebody for it.
func (g *group) wakeLater() {
	if g.offers == 0 {
		g.t.dirty = append(g.t.dirty, g)
	}
	g.offers++
}

// strict reports whether a waiting item keeps its place and blocks its key.
func (g *group) strict(it *item) bool { return g.order == driver.Strict && it.content().key != "" }

func (g *group) statistics(now moment) driver.GroupStats {
	s := g.stats
	s.Group, s.Order, s.Paused, s.Consumers = g.name, g.order, g.paused, len(g.members)
	s.Died = g.buried
	s.Ready, s.Inflight, s.Waiting, s.Dead = g.count[ready], g.count[inflight], g.count[waiting], g.count[dead]
	since := g.ready.oldest()
	if c := g.nextCold(); c != nil {
		since = min(since, c.due) // or a little earlier
	}
	if since != never {
		s.Oldest = time.Duration(max(0, now.tick-since))
	}
	return s
}
