package engine

import (
	"context"
	"encoding/binary"
	"fmt"
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
	var chunk []byte
	n, chunks := 0, 0
	first := uint64(0)
	for _, e := range t.log.all() {
		if n%chunkSize == 0 {
			first, chunk = e.seq, append(chunk[:0], recordVersion)
		}
		chunk = appendIndexed(chunk, e, now)
		n++
		if n%chunkSize == 0 || n == t.log.count {
			key := appendNumberKey(nil, t.journal.number, kindIndex, first)
			if err := t.e.put(ctx, key, seal(chunk, 0)); err != nil {
				return err
			}
			chunks++
		}
	}
	more, err := t.snapshotCold(ctx, now)
	if err != nil {
		return err
	}
	return t.e.put(ctx, appendPrefix(nil, t.journal.number, kindIndex), appendMark(nil, chunks+more))
}

// put stores one record, and waits for it: chunks must not pile up in memory.
func (e *Engine) put(ctx context.Context, key, value []byte) error {
	b := e.o.Store.Batch()
	b.Set(key, value, nil)
	return e.o.Store.Append(b, false).Wait(ctx, false)
}

// appendMark appends the mark behind so many chunks.
func appendMark(dst []byte, chunks int) []byte {
	start := len(dst)
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(chunks))
	return seal(dst, start)
}

func decodeMark(record []byte) (chunks uint64, err error) {
	r := unseal(record)
	chunks = r.uint()
	return chunks, r.end()
}

// appendIndexed appends what the indexes keep of a message.
func appendIndexed(dst []byte, e *entry, now moment) []byte {
	h := headOf(e, now)
	dst = binary.AppendUvarint(dst, e.seq)
	dst = append(dst, byte(h.state))
	dst = binary.AppendUvarint(dst, h.fan)
	dst = binary.AppendVarint(dst, h.due)
	dst = binary.AppendVarint(dst, h.expires)
	dst = appendBytes(dst, e.id)
	dst = appendBytes(dst, e.key)
	dst = binary.AppendVarint(dst, int64(e.priority))
	ttl := time.Duration(0)
	if e.expiry != nil {
		ttl = e.expiry.ttl
	}
	dst = binary.AppendVarint(dst, int64(ttl))
	dst = binary.AppendVarint(dst, e.published)
	dst = appendBool(dst, e.is(ownID))
	dst = binary.AppendUvarint(dst, uint64(e.size()))
	if !e.is(recorded) {
		return appendBytes(dst, "")
	}
	return appendBytes(dst, appendState(nil, e, now))
}

// decodeIndexed reads what appendIndexed wrote, and the state if there is one.
func decodeIndexed(r *reader) (*found, *storedState) {
	f := &found{seq: r.uint()}
	f.head = messageHead{state: entryState(r.upTo(uint64(fanned))), fan: r.uint(), due: r.int(), expires: r.int()}
	f.message = &driver.Message{ID: r.text(), Key: r.text(), Priority: driver.Priority(r.int()),
		TTL:         time.Duration(r.int()),
		PublishedAt: time.Unix(0, r.int()), OwnID: r.bool()}
	f.size = int(r.upTo(1 << 40))
	record := r.bytes()
	if r.err == nil && (f.head.state == atRest || f.message.ID == "" || !f.message.Priority.Valid()) {
		r.err = fmt.Errorf("message 0-%d is not one", f.seq)
	}
	if r.err != nil || len(record) == 0 {
		return f, nil
	}
	s, err := decodeState(record)
	if err == nil && s.state == invalid {
		err = fmt.Errorf("message 0-%d is invalid", f.seq)
	}
	r.err = err
	return f, s
}

// decodeChunk reads the messages of one chunk.
func decodeChunk(record []byte, use func(f *found, s *storedState)) error {
	r := unseal(record)
	for len(r.rest) > 0 && r.err == nil {
		if f, s := decodeIndexed(r); r.err == nil {
			use(f, s)
		}
	}
	return r.end()
}
