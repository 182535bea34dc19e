package engine

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/container"
	"github.com/ferrymq/ferry/internal/refusal"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// topic is one shard: everything in it is guarded by mu.
type topic struct {
	e *Engine

	mu    sync.Mutex
	ended bool // closed or deleted
	topicRecord

	log     sequence[entry]
	ids     container.Table[*entry]
	delayed container.Heap[tick, *entry]
	expires container.Heap[tick, *entry]
	waiting scheduler.Waiting[item] // until a tick
	settled []settlement            // kept until
	invalid sequence[entry]
	cold    coldTail

	dirty []*group // have something new to claim
	freed int64    // messages removed, not yet told to the engine
	spent []*item  // ended in this step

	ownIDs   memory
	dedupIDs memory

	journal *journal // nil without a store

	leaseNext tick // no lease ends before
	timer     *time.Timer
	armed     tick
}

// settlement says since when a message is kept.
type settlement struct {
	seq  uint64
	at   tick
	kept uint8 // entry.kept at that time
}

func newTopic(e *Engine, name string) *topic {
	t := &topic{
		e: e, armed: never, topicRecord: topicRecord{name: name}, leaseNext: never,
		ids:     container.NewTable[*entry](),
		delayed: container.NewHeap[tick](func(e *entry, at int32) { e.dueAt = at }),
		expires: container.NewHeap[tick](func(e *entry, at int32) { e.expiry.heapAt = at }),
		waiting: scheduler.NewWaiting[item](),
	}
	t.ownIDs, t.dedupIDs = newMemory(t, kindOwnID), newMemory(t, kindDedup)
	t.cold.ids.seed = e.nonce
	if e.o.Store != nil {
		t.journal = &journal{}
	}
	return t
}

// unlock stores the step, wakes those who have something to claim, arms the timer, and unlocks. It returns the round
// of the step, for those who wait for it.
func (t *topic) unlock(now moment) Round {
	r := t.flush(now)
	for i, g := range t.dirty {
		g.wakeNow(g.offers)
		g.offers = 0
		t.dirty[i] = nil
	}
	t.dirty = t.dirty[:0]
	if t.freed > 0 {
		t.e.stored.Add(-t.freed)
		t.freed = 0
	}
	t.recycle()
	t.arm(now)
	t.mu.Unlock()
	return r
}

// end makes the topic refuse everything from now on. No timer of it fires later.
func (t *topic) end() {
	t.ended = true
	if t.armed != never && t.timer.Stop() {
		t.e.timers.Done()
	}
	t.armed = never
	t.e.stored.Add(-t.freed)
	t.freed = 0
}

func (t *topic) nextPlace() uint64 {
	t.places++
	return t.places
}

// group returns where a group is, or would be, and whether it is there.
func (t *topic) group(name string) (int, bool) {
	return slices.BinarySearchFunc(t.groups, name, func(g *group, n string) int { return strings.Compare(g.name, n) })
}

// mustGroup is ErrNotFound when there is no such group.
func (t *topic) mustGroup(name string) (*group, error) {
	if i, ok := t.group(name); ok {
		return t.groups[i], nil
	}
	names := make([]string, 0, len(t.groups))
	for _, g := range t.groups {
		names = append(names, g.name)
	}
	return nil, refusal.NoGroup(t.name, name, names)
}

func (t *topic) addGroup(name string, o driver.Order, fixed bool) *group {
	t.groupNumbers++
	g := &group{groupRecord: groupRecord{name: name, order: o, orderFixed: fixed, number: t.groupNumbers, since: t.places}}
	g.open(t)
	i, _ := t.group(name)
	t.groups = slices.Insert(t.groups, i, g)
	t.alter()
	return g
}
