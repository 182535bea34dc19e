package engine

import (
	"maps"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/container"
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
	keys     map[string]bool
	offered  int
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
		a.groups[g] = &tally{keys: map[string]bool{}, inflight: map[*subscription]int{}, since: map[tick]int{},
			losses: map[*subscription]int{}}
	}
	ids := 0
	for _, e := range a.t.log.all() {
		a.entry(e)
		if e.is(indexed) {
			ids++
		}
	}
	if n := a.t.ids.Len(); n != ids {
		a.Errorf("%d ids are indexed, want %d", n, ids)
	}
	if n := a.t.waiting.Len(); n != a.waiting {
		a.Errorf("%d items in the waiting heap, want %d", n, a.waiting)
	}
	a.cold()
	s := a.t.stats
	if s.Messages != a.want.Messages || s.Bytes != a.want.Bytes || s.Delayed != a.want.Delayed || s.Held != a.want.Held ||
		s.Invalid != a.want.Invalid {
		a.Errorf("topic stats %+v, want %+v", s, a.want)
	}
	if s.Published != s.Fanned+s.Expired+s.Cancelled+uint64(s.Delayed+s.Held) {
		a.Errorf("topic stats do not balance: %+v", s)
	}
	if n := a.t.delayed.Len(); int64(n) != s.Delayed {
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
	if e.live != live || e.settled() != (live == 0 && graves == 0) {
		a.Errorf("entry %d has live %d and is settled: %v, want %d and %d dead", e.seq, e.live, e.settled(), live, graves)
	}
	if live > 0 {
		a.want.Messages++
		a.want.Bytes += e.size()
	}
	if x := e.expiry; x != nil && x.heapAt != container.Nowhere && (live == 0 || x.at == never) {
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
	if it.Chained() {
		want.keys[it.content().key] = true
	}
	switch it.state {
	case ready:
		a.ready(it, want)
	case waiting:
		a.waiting++
		if until, waits := a.t.waiting.Until(&it.Node); !waits || until != int64(it.at) || it.Offered() {
			a.Errorf("waiting item %d is not in the waiting heap", it.e.seq)
		}
	case inflight:
		if it.claim == nil || it.claim.item != it || it.Offered() || it.Waits() {
			a.Errorf("item %d is in flight without a claim, or offered", it.e.seq)
			return
		}
		want.inflight[it.claim.s]++
	default:
		if it.Offered() || it.Waits() || it.Chained() || it.claim != nil {
			a.Errorf("%s item %d is still linked", it.state, it.e.seq)
		}
	}
}

// ready checks where an item is that can be claimed, or comes behind what is cold.
func (a *auditor) ready(it *item, want *tally) {
	want.since[it.at]++
	if it.Waits() {
		if until, behind := it.g.behind.Until(&it.Node); it.Chained() || !behind || uint64(until) < it.g.frontier() {
			a.Errorf("item %d is behind what is cold, but should not be", it.e.seq)
		}
		want.behind++
		return
	}
	if keyed := it.content().key != ""; keyed != it.Chained() || !keyed && !it.Offered() {
		a.Errorf("ready item %d is nowhere", it.e.seq)
	}
	if it.Offered() {
		want.offered++
	}
}

// losses checks to whom an item listens.
func (a *auditor) losses(it *item, want *tally) {
	if it.lost > 0 && !it.is(leaseLost) {
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
	for _, s := range c.stretches {
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
	if want.behind != g.behind.Len() || want.normal != g.normal || g.cold < 0 || g.cold > int64(a.t.cold.count) {
		a.Errorf("group %s has %d behind, %d normal ones, %d cold; want %d and %d", g.name, g.behind.Len(), g.normal, g.cold,
			want.behind, want.normal)
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
	for _, t := range g.ready.times {
		if t.items > 0 {
			times[t.since] = t.items
		}
	}
	if !maps.Equal(times, want.since) || int64(g.graves.count) != g.count[dead] {
		a.Errorf("group %s has items ready since %v and %d dead, want %v and %d", g.name, times, g.graves.count, want.since,
			g.count[dead])
	}
	if len(want.keys) != g.queue.Keys() {
		a.Errorf("group %s has %d keys, want %d", g.name, g.queue.Keys(), len(want.keys))
	}
	for key := range want.keys {
		a.key(g, key)
	}
	a.members(g, want)
}

// key checks that a key is held by one, and that its first message is offered while it is held by none.
func (a *auditor) key(g *group, key string) {
	var first, last *item
	var holder *subscription
	for it := range g.queue.Members(key) {
		if first == nil {
			first = it
		}
		if last != nil && it.Place <= last.Place {
			a.Errorf("key %q is out of order", key)
		}
		last = it
		if it.claim == nil {
			continue
		}
		if holder != nil && it.claim.s != holder {
			a.Errorf("key %q is held by two subscriptions", key)
		}
		holder = it.claim.s
	}
	if offered := holder == nil && first.state == ready; first.Offered() != offered {
		a.Errorf("key %q: the first is offered: %v, want %v", key, first.Offered(), offered)
	}
}

func (a *auditor) members(g *group, want *tally) {
	if g.queue.Empty() != (want.offered == 0) {
		a.Errorf("%d items of group %s can be claimed; empty: %v", want.offered, g.name, g.queue.Empty())
	}
	for _, s := range g.members {
		if s.holder.Len() != want.inflight[s] {
			a.Errorf("subscription has %d in flight, want %d", s.holder.Len(), want.inflight[s])
		}
		if len(s.losses) != want.losses[s] {
			a.Errorf("subscription knows %d losses, want %d", len(s.losses), want.losses[s])
		}
		if s.holder.Len() > s.o.MaxInflight {
			a.Errorf("subscription holds %d, more than %d", s.holder.Len(), s.o.MaxInflight)
		}
	}
	if !g.paused && !a.t.paused && want.offered > 0 {
		for w := g.waiters.next; w != &g.waiters; w = w.next {
			if !w.s.full() {
				a.Errorf("group %s has something to claim and somebody waiting who was not woken", g.name)
			}
		}
	}
}
