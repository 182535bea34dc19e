package engine

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// group gets every message that became ready after it was created. It is guarded by the lock of its topic.
type group struct {
	t          *topic
	name       string
	order      driver.Order
	orderFixed bool // by its first member, or when it was created by hand
	paused     bool
	leaving    bool   // is being deleted: nobody joins
	number     uint32 // in the store
	since      uint64 // the place of the newest message that became ready before it was created

	queue   scheduler.Queue[item]
	ready   readyTimes
	behind  scheduler.Waiting[item] // ready, and behind something cold: up to which place
	cold    int64                   // ready messages that are in the store only
	normal  int                     // ready items of the normal lane, in memory
	graves  sequence[item]          // dead letters, in the order in which they died
	buried  uint64                  // the place of the newest dead letter
	members []*subscription

	waiters waiterList
	offers  int // made since the last wake-up

	count [done + 1]int64 // items by state; gone and done are not kept exact
	stats driver.GroupStats
}

func newGroup(t *topic, name string, o driver.Order, fixed bool) *group {
	g := &group{t: t, name: name, order: o, orderFixed: fixed, behind: scheduler.NewWaiting[item]()}
	g.queue = scheduler.New[item](g.wakeLater)
	return g
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
	if since := min(g.ready.oldest(), g.oldestCold()); since != never {
		s.Oldest = time.Duration(max(0, now.tick-since))
	}
	return s
}
