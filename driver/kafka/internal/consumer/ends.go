package consumer

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// The end of a message in the retry log is a tombstone. But as long as its offset in the main topic is not committed, a
// crash would bring it back from there as a new one, without its counts. Until then it ends with a record that says it
// is done; a tombstone follows when the commit has passed it.

// retryEnd is a tombstone of the retry log, by its owner.
func (m *member) retryEnd(p *partition, key string) *kgo.Record {
	return loggedAs(m.retryName, p.id, key, nil, record.State{Epoch: p.epoch, Offset: -1})
}

// endOf is the record that ends an item in the retry log.
func (m *member) endOf(it *Item) *kgo.Record {
	r := m.retryEnd(it.p, it.retryKey())
	if it.offset >= it.p.passed {
		it.endNoted = true
		r.Value = []byte{'d'}
		if m.wasLast(it) {
			r.Value = append(r.Value, it.Msg.Key...)
		}
		r.Headers = []kgo.RecordHeader{record.State{Epoch: it.p.epoch, Offset: it.offset, Done: true}.Header()}
	}
	return r
}

// wasLast says that all messages of its key before an item have ended too. They may not be committed either: coming
// again alone, they would come after it.
func (q *queue) wasLast(it *Item) bool {
	if q.order != driver.Strict || it.Msg.Key == "" {
		return false
	}
	known := false // the key
	for x := range q.scheduled.Members(it.Msg.Key) {
		if known = true; x != it && x.offset < it.offset {
			return false
		}
	}
	return known
}

// endLater has the end of something in the retry log stored, for which nobody waits. What is not stored is ended by the
// next owner, or delivered again.
func (m saver) endLater(r *kgo.Record) {
	m.ends = append(m.ends, r)
	m.saving.Give()
}

// noteEnded is told that an item has ended.
func (p *partition) noteEnded(it *Item) {
	if it.endNoted {
		p.ended[it.offset] = it.retryKey()
	}
}

// restoreEnded takes what an earlier owner ended so. One that the commit has passed becomes a tombstone with the next
// records.
func (p *partition) restoreEnded(key string, s record.State, value []byte) {
	if s.Offset < p.passed {
		delete(p.found, key)
		p.doubtful[key] = true
		return
	}
	p.done.Set(s.Offset)
	p.dirty = true
	p.ended[s.Offset] = key
	if k := string(value[1:]); k != "" {
		p.doneKeys[k] = max(p.doneKeys[k], s.Offset)
	}
}

// hasPassed is told of a commit. Tombstones follow for what ended before it.
func (p *partition) hasPassed(base int64) {
	p.passed = max(p.passed, base)
	if p.lost {
		return
	}
	for off, key := range p.ended {
		if off < p.passed {
			p.m.saver.endLater(p.m.retryEnd(p, key))
			delete(p.ended, off)
		}
	}
}
