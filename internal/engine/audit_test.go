package engine

import (
	"maps"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// audit checks that all indexes of all topics agree with the messages, and that the counts are right.
func audit(t testing.TB, e *Engine) {
	t.Helper()
	stored := int64(0)
	for _, tp := range e.allTopics() {
		tp.mu.Lock()
		if !tp.ended {
			(&auditor{TB: t, t: tp, groups: map[*group]*tally{}}).run()
			stored += int64(tp.log.count + tp.cold.count)
		}
		tp.mu.Unlock()
	}
	if n := e.stored.Load(); n != stored {
		t.Errorf("the engine counts %d messages, the topics hold %d", n, stored)
	}
}

// tally is what a group should have, counted one by one.
type tally struct {
	count    [done + 1]int64
	chains   map[*chain]bool
	lanes    int
	inflight map[*subscription]int
	since    map[tick]int // ready
	behind   int
	normal   int
	losses   map[*subscription]int
}

type auditor struct {
	testing.TB
	t       *topic
	groups  map[*group]*tally
	waiting int
	want    driver.TopicStats
}

func (a *auditor) run() {
	a.Helper()
	for _, g := range a.t.groups {
		a.groups[g] = &tally{chains: map[*chain]bool{}, inflight: map[*subscription]int{}, since: map[tick]int{}, losses: map[*subscription]int{}}
	}
	ids := 0
	for _, e := range a.t.log.all() {
		a.entry(e)
		if e.is(indexed) {
			ids++
		}
	}
	if n := a.t.ids.len(); n != ids {
		a.Errorf("%d ids are indexed, want %d", n, ids)
	}
	if n := len(a.t.waiting.slots); n != a.waiting {
		a.Errorf("%d items in the waiting heap, want %d", n, a.waiting)
	}
	a.cold()
	s := a.t.stats
	if s.Messages != a.want.Messages || s.Bytes != a.want.Bytes || s.Delayed != a.want.Delayed || s.Held != a.want.Held || s.Invalid != a.want.Invalid {
		a.Errorf("topic stats %+v, want %+v", s, a.want)
	}
	if s.Published != s.Fanned+s.Expired+s.Cancelled+uint64(s.Delayed+s.Held) {
		a.Errorf("topic stats do not balance: %+v", s)
	}
	if n := len(a.t.delayed.slots); int64(n) != s.Delayed {
		a.Errorf("%d entries in the delayed heap, want %d", n, s.Delayed)
	}
	for g, want := range a.groups {
		a.group(g, want)
	}
}

func (a *auditor) entry(e *entry) {
	live, graves := uint16(0), uint16(0)
	for it := e.items; it != nil; it = it.sibling {
		a.item(it)
		if it.state.live() {
			live++
		}
		if it.state == dead {
			graves++
		}
	}
	switch e.state {
	case delayed:
		a.want.Delayed++
		live++
	case held:
		a.want.Held++
		live++
	case invalid:
		a.want.Invalid++
	}
	if e.live != live || e.dead != graves {
		a.Errorf("entry %d has live %d and dead %d, want %d and %d", e.seq, e.live, e.dead, live, graves)
	}
	if live > 0 {
		a.want.Messages++
		a.want.Bytes += e.size()
	}
	if x := e.expiry; x != nil && x.heapAt != nowhere && (live == 0 || x.at == never) {
		a.Errorf("entry %d is in the expiry heap, but cannot expire", e.seq)
	}
	if live == 0 && graves == 0 && e.state != invalid && a.t.config.Keep == 0 {
		a.Errorf("entry %d is settled and still there", e.seq)
	}
}

func (a *auditor) item(it *item) {
	want := a.groups[it.g]
	if want == nil {
		a.Errorf("item %d belongs to a group that is gone", it.e.seq)
		return
	}
	want.count[it.state]++
	a.losses(it, want)
	if it.state == ready && it.content().priority == driver.Normal {
		want.normal++
	}
	if it.chain != nil {
		want.chains[it.chain] = true
	}
	offered := it.inLane > 0
	if it.inLane == inBehind {
		if it.state != ready || it.chain != nil || it.g.behind.slots[it.heapAt].v != it || uint64(it.g.behind.slots[it.heapAt].key) < it.g.frontier() {
			a.Errorf("item %d is behind what is cold, but should not be", it.e.seq)
		}
		want.behind++
		want.since[it.since]++
		return
	}
	switch it.state {
	case ready:
		switch {
		case it.chain == nil && (it.content().key != "" || !offered):
			a.Errorf("ready item %d is nowhere", it.e.seq)
		case it.chain != nil && offered != (it.chain.offered == it):
			a.Errorf("ready item %d: offered %v, but its chain thinks otherwise", it.e.seq, offered)
		}
		if offered {
			want.lanes++
		}
		want.since[it.since]++
	case waiting:
		a.waiting++
		if it.heapAt == nowhere || offered || a.t.waiting.slots[it.heapAt].v != it {
			a.Errorf("waiting item %d is not in the waiting heap", it.e.seq)
		}
	case inflight:
		if it.claim == nil || it.claim.item != it || offered || it.heapAt != nowhere {
			a.Errorf("item %d is in flight without a claim, or offered", it.e.seq)
			return
		}
		want.inflight[it.claim.s]++
	default:
		if offered || it.heapAt != nowhere || it.chain != nil || it.claim != nil {
			a.Errorf("%s item %d is still linked", it.state, it.e.seq)
		}
	}
}

// losses checks to whom an item listens.
func (a *auditor) losses(it *item, want *tally) {
	if it.lost > 0 && !it.lapsed {
		a.Errorf("item %d lost %d leases, and none", it.e.seq, it.lost)
	}
	if it.more == nil {
		return
	}
	if n := len(it.more.losses); n > mostLosses || n > int(it.lost) || n > 0 && !it.state.live() {
		a.Errorf("%s item %d lost %d leases, and listens to %d holders", it.state, it.e.seq, it.lost, n)
	}
	for _, c := range it.more.losses {
		want.losses[c.s]++
		if !c.begun || c.s.closed || c.s.losses[c] != it {
			a.Errorf("item %d listens to a holder that it need not know", it.e.seq)
		}
	}
}

// cold checks the stretches.
func (a *auditor) cold() {
	c := &a.t.cold
	count, at := 0, stretch{}
	for _, s := range c.stretches.vs {
		if s.count <= 0 || s.first <= at.last || s.last < s.first || s.place <= at.lastPlace || s.lastPlace < s.place {
			a.Errorf("stretch %+v after %+v", s, at)
		}
		count += s.count
		a.want.Messages += int64(s.count)
		a.want.Bytes += s.bytes
		at = s
	}
	if count != c.count || count < c.ids.count {
		a.Errorf("%d messages are cold, counted %d, with %d ids", count, c.count, c.ids.count)
	}
}

func (a *auditor) group(g *group, want *tally) {
	if want.behind != len(g.behind.slots) || want.normal != g.normal || g.cold < 0 || g.cold > int64(a.t.cold.count) {
		a.Errorf("group %s has %d behind, %d normal ones, %d cold; want %d and %d", g.name, len(g.behind.slots), g.normal, g.cold, want.behind, want.normal)
	}
	want.count[ready] += g.cold
	for s := ready; s < done; s++ {
		if g.count[s] != want.count[s] {
			a.Errorf("group %s counts %d %s, want %d", g.name, g.count[s], s, want.count[s])
		}
	}
	s := g.statistics(moment{})
	if s.Received != s.Acked+s.Dropped+s.Expired+s.Cancelled+uint64(s.Ready+s.Inflight+s.Waiting+s.Dead) {
		a.Errorf("group stats do not balance: %+v", s)
	}
	times := map[tick]int{}
	for _, t := range g.ready.times.vs {
		if t.items > 0 {
			times[t.since] = t.items
		}
	}
	if !maps.Equal(times, want.since) || int64(g.graves.count) != g.count[dead] {
		a.Errorf("group %s has items ready since %v and %d dead, want %v and %d", g.name, times, g.graves.count, want.since, g.count[dead])
	}
	if len(want.chains) != g.chains.len() {
		a.Errorf("group %s has %d chains, want %d", g.name, g.chains.len(), len(want.chains))
	}
	for c := range want.chains {
		a.chain(g, c)
	}
	a.offers(g, want)
}

func (a *auditor) chain(g *group, c *chain) {
	held := 0
	var holder *subscription
	for it := c.head; it != nil; it = it.keyNext {
		if it.state == inflight {
			held++
			if holder != nil && it.claim.s != holder {
				a.Errorf("key %q is held by two subscriptions", c.key)
			}
			holder = it.claim.s
		}
		if it.keyNext != nil && it.keyNext.place <= it.place {
			a.Errorf("key %q is out of order", c.key)
		}
	}
	it := c.candidate()
	if held != c.held || c.offered != it {
		a.Errorf("key %q: held %d, want %d; offered %v, want %v", c.key, c.held, held, c.offered, it)
	}
}

func (a *auditor) offers(g *group, want *tally) {
	lanes := 0
	for i := range g.lanes {
		lanes += len(g.lanes[i].back.slots)
		for it := g.lanes[i].fresh.head; it != nil; it = it.laneNext {
			lanes++
			if it.laneNext != nil && it.laneNext.place <= it.place {
				a.Errorf("lane %d of group %s is out of order", i, g.name)
			}
		}
	}
	if lanes != want.lanes {
		a.Errorf("the lanes of group %s hold %d, want %d", g.name, lanes, want.lanes)
	}
	for _, s := range g.members {
		leases := 0
		for c := s.leases.head; c != nil; c = c.next {
			leases++
		}
		if leases != want.inflight[s] || leases != s.inflight {
			a.Errorf("subscription has %d leases, %d in flight; want %d", leases, s.inflight, want.inflight[s])
		}
		if len(s.losses) != want.losses[s] {
			a.Errorf("subscription knows %d losses, want %d", len(s.losses), want.losses[s])
		}
		if s.inflight > s.o.MaxInflight {
			a.Errorf("subscription holds %d, more than %d", s.inflight, s.o.MaxInflight)
		}
	}
	if g.waiters.head != nil && !g.paused && !a.t.paused && lanes > 0 {
		for w := g.waiters.head; w != nil; w = w.next {
			if !w.s.full() {
				a.Errorf("group %s has something to claim and somebody waiting who was not woken", g.name)
			}
		}
	}
}
