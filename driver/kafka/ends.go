package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// The end of a message in the side log is a tombstone. But as long as its place in the main topic is not committed, a crash would bring it back from
// there as a new one, without its counts. Until then it ends with a mark that says it is done; a tombstone follows when the commit has passed it.

// sideEnd is a tombstone of the side log, by its owner.
func (m *member) sideEnd(p *partition, key string) *kgo.Record {
	r := tombstone(m.sideName, p.id, key)
	r.Headers = []kgo.RecordHeader{state{Epoch: p.epoch, Offset: -1}.header()}
	return r
}

// endOf is the record that ends an item in the side log.
func (m *member) endOf(it *item) *kgo.Record {
	r := m.sideEnd(it.p, it.sideKey())
	if it.offset >= it.p.passed {
		it.marked = true
		r.Value = []byte{'d'}
		if m.wasLast(it) {
			r.Value = append(r.Value, it.msg.Key...)
		}
		r.Headers = []kgo.RecordHeader{state{Epoch: it.p.epoch, Offset: it.offset, Done: true}.header()}
	}
	return r
}

// wasLast says that all messages of its key before an item have ended too. They may not be committed either: coming again alone, they would come after it.
func (q *queue) wasLast(it *item) bool {
	if q.order != driver.Strict || it.msg.Key == "" {
		return false
	}
	known := false // the key
	for x := range q.scheduled.Members(it.msg.Key) {
		if known = true; x != it && x.offset < it.offset {
			return false
		}
	}
	return known
}

// storeEnds stores ends that nobody waits for. What is not stored is ended by the next owner, or delivered again.
func (m *member) storeEnds(rs ...*kgo.Record) {
	for _, r := range rs {
		if r != nil {
			m.d.client.Produce(context.Background(), r, nil)
		}
	}
}

// noteMark is told that an item has ended.
func (p *partition) noteMark(it *item) {
	if it.marked {
		p.marks[it.offset] = it.sideKey()
	}
}

// restoreMark takes a mark of an earlier owner. One that the commit has passed becomes a tombstone with the next records.
func (p *partition) restoreMark(key string, s state, value []byte) {
	if s.Offset < p.passed {
		delete(p.found, key)
		p.doubtful[key] = true
		return
	}
	p.done.set(s.Offset)
	p.dirty = true
	p.marks[s.Offset] = key
	if k := string(value[1:]); k != "" {
		p.doneKeys[k] = max(p.doneKeys[k], s.Offset)
	}
}

// hasPassed is told of a commit, and returns tombstones for the marks before it.
func (p *partition) hasPassed(base int64) (ends []*kgo.Record) {
	p.passed = max(p.passed, base)
	if p.lost {
		return nil
	}
	for off, key := range p.marks {
		if off < p.passed {
			ends = append(ends, p.m.sideEnd(p, key))
			delete(p.marks, off)
		}
	}
	return ends
}
