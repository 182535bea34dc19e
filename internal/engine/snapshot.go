package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Opening a store reads every message, bodies and all. So that this is not needed after a clean end, Close writes what
// the indexes keep of each message of a large topic, in chunks, and then a mark. The first thing that is written of the
// topic after the store was opened removes them: a mark that is there is true.

const chunkSize = 1000 // messages

// snapshot writes the chunks and marks of all large topics. It may be cut off anywhere.
func (e *Engine) snapshot(ctx context.Context) error {
	for _, t := range e.allTopics() {
		if t.log.count+t.cold.count < e.o.SnapshotFrom || !t.describable() {
			continue
		}
		if err := t.snapshot(ctx, e.now()); err != nil {
			return err
		}
	}
	return nil
}

// describable reports whether chunks can hold all that there is to say about the messages of a topic. Not those that
// could not be decoded, and not those that are kept: only their records tell since when.
func (t *topic) describable() bool {
	for _, e := range t.log.all() {
		if e.state == invalid || e.extra != nil && e.extra.raw != nil || e.state == fanned && e.settled() {
			return false
		}
	}
	return true
}

func (t *topic) snapshot(ctx context.Context, now moment) error {
	var chunk walk
	chunks := 0
	for es := range slices.Chunk(t.log.all(), chunkSize) {
		chunk = writing(chunk.data, now)
		for _, e := range es {
			asFound(e, now).walk(&chunk)
		}
		key := appendNumberKey(nil, t.journal.number, kindIndex, es[0].seq)
		if err := t.e.put(ctx, key, chunk.seal()); err != nil {
			return err
		}
		chunks++
	}
	more, err := t.snapshotCold(ctx, now)
	if err != nil {
		return err
	}
	behind := mark(chunks + more)
	return t.e.put(ctx, appendPrefix(nil, t.journal.number, kindIndex), new(walk).write(&behind, now))
}

// put stores one record, and waits for it: chunks must not pile up in memory.
func (e *Engine) put(ctx context.Context, key, value []byte) error {
	b := e.o.Store.Batch()
	b.Set(key, value, nil)
	return e.o.Store.Append(b, false).Wait(ctx, false)
}

// mark stands behind so many chunks.
type mark uint64

func (m *mark) walk(w *walk) { w.uints((*uint64)(m)) }

// asFound is what the indexes keep of a message, as if it had been read, and the record of its state if there is one.
func asFound(e *entry, now moment) *found {
	f := &found{seq: e.seq, head: headOf(e, now), size: int(e.size()), message: &driver.Message{ID: e.id, Key: e.key,
		Priority: e.priority, PublishedAt: time.Unix(0, e.published), OwnID: e.is(ownID)}}
	if e.expiry != nil {
		f.message.TTL = e.expiry.ttl
	}
	if e.is(recorded) {
		var s storedState
		s.of(e, now)
		f.state = new(walk).write(&s, now)
	}
	return f
}

func (f *found) walk(w *walk) {
	m := f.message
	w.uints(&f.seq)
	w.head(&f.head, fanned)
	w.texts(&m.ID, &m.Key)
	number(w, &m.Priority)
	number(w, &m.TTL)
	published := m.PublishedAt.UnixNano()
	number(w, &published)
	m.PublishedAt = time.Unix(0, published)
	w.flags(&m.OwnID)
	count(w, &f.size, 1<<40)
	if w.bytes(&f.state); w.reading && (f.head.state == atRest || m.ID == "" || !m.Priority.Valid()) {
		w.fail(fmt.Errorf("message 0-%d is not one", f.seq))
	}
}

// readChunk reads the messages of one chunk.
func readChunk(record []byte, now moment, use func(f *found, s *storedState)) error {
	w := unseal(record, recordVersion, now)
	for w.more() {
		f, s := &found{message: &driver.Message{}}, (*storedState)(nil)
		f.walk(w)
		if len(f.state) > 0 && w.err == nil {
			s = &storedState{}
			if err := s.read(f.state, now); err != nil {
				w.fail(err)
			} else if s.state == invalid {
				w.fail(fmt.Errorf("message 0-%d is invalid", f.seq))
			}
		}
		if w.err == nil {
			use(f, s)
		}
	}
	return w.end()
}
