package engine

import (
	"math"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// topicRecord is what is stored of a topic beside its messages. What is there now is not: it is counted again.
type topicRecord struct {
	name         string
	config       driver.TopicConfig
	fixed        bool // the configuration was given, not only defaulted
	paused       bool
	seq          uint64 // of the newest message
	places       uint64 // given to items, in the order in which they became ready
	head         uint64 // before which nothing was in the log
	trimmed      uint64 // the newest message that was removed after being settled
	trimmedDue   tick   // and when the newest of them became ready
	groupNumbers uint32 // given to groups
	stats        driver.TopicStats
	groups       []*group // in order of their names
}

// groupRecord is what is stored of a group. It sees what became ready after since, unless the state of a message says
// otherwise.
type groupRecord struct {
	name       string
	order      driver.Order
	orderFixed bool // by its first member, or when it was created by hand
	paused     bool
	number     uint32
	since      uint64 // the place of the newest message that became ready before it was created
	buried     uint64 // the place of the newest dead letter
	stats      driver.GroupStats
}

// walk makes a topic that is read, and its groups, as far as they are stored.
func (t *topicRecord) walk(w *walk) {
	w.texts(&t.name)
	number(w, &t.config.MaxMessages)
	number(w, &t.config.MaxBytes)
	number(w, &t.config.Keep)
	number(w, &t.config.Partitions)
	w.flags(&t.config.ExpiredDead, &t.fixed, &t.paused)
	w.tick(&t.trimmedDue)
	w.uints(&t.seq, &t.places, &t.head, &t.trimmed)
	count(w, &t.groupNumbers, math.MaxUint32)
	n := uint64(len(t.groups))
	w.uints(&t.stats.Published, &t.stats.Fanned, &t.stats.Expired, &t.stats.Cancelled, &n)
	for i := 0; uint64(i) < n && w.err == nil; i++ {
		if w.reading {
			t.groups = append(t.groups, &group{})
		}
		t.groups[i].groupRecord.walk(w)
	}
	t.walkLater(w)
}

// walkLater walks what records of older programs do not have, unless there is nothing of it: the bound of what is kept,
// then how often each group retried.
func (t *topicRecord) walkLater(w *walk) {
	retried := slices.ContainsFunc(t.groups, func(g *group) bool { return g.stats.Retried > 0 })
	if w.later(t.config.KeepMost > 0 || retried) {
		count(w, &t.config.KeepMost, math.MaxInt64)
	}
	if w.later(retried) {
		for _, g := range t.groups {
			w.uints(&g.stats.Retried)
		}
	}
}

func (g *groupRecord) walk(w *walk) {
	w.texts(&g.name)
	w.flags(&g.orderFixed, &g.paused)
	count(w, &g.number, math.MaxUint32)
	count(w, &g.order, uint64(driver.Relaxed))
	s := &g.stats
	w.uints(&g.since, &g.buried, &s.Received, &s.Acked, &s.Dropped, &s.Expired, &s.Cancelled, &s.Redelivered)
}
