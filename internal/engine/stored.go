package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// contents copies what is picked, because its content may leave memory at any time. Nil without a store.
func (t *topic) contents(picked []*item) []entry {
	if t.journal == nil {
		return nil
	}
	copies := make([]entry, len(picked))
	for i, it := range picked {
		copies[i] = *it.e
	}
	return copies
}

// found is a message as it was read from the store.
type found struct {
	seq     uint64
	head    messageHead
	message *driver.Message // nil if it cannot be decoded; its body is not its own
	size    int
	problem error  // why it cannot be decoded
	raw     []byte // which then is all there is
	state   []byte // the record of it, in a chunk of the index
}

var errMissing = errors.New("its record is missing from the store")

// readFound reads a message from its record, which is nil if there is none. What cannot be decoded is ready, and goes
// to the parse errors when it is claimed.
func readFound(topic string, seq uint64, value []byte) found {
	f := found{seq: seq, head: messageHead{state: fanned, fan: seq}}
	if value == nil {
		f.raw, f.problem = []byte{}, errMissing
		return f
	}
	head, env, err := splitMessage(value)
	if err != nil {
		f.raw, f.problem = append([]byte{}, value...), err
		return f
	}
	f.head = head
	if f.message, f.problem = decodeMessage(env, topic); f.problem != nil {
		f.raw = append([]byte{}, env...)
		return f
	}
	f.size = len(f.message.Body)
	for k, v := range f.message.Headers {
		f.size += len(k) + len(v)
	}
	return f
}

// arena copies values that are only lent. Small ones share allocations, as bodies in memory do.
type arena struct{ room []byte }

const arenaSize = 16 << 10

// keep copies a value, of which about so many are to come.
func (s *arena) keep(value []byte, left int) []byte {
	if value == nil {
		return nil
	}
	n := len(value)
	if n >= shareBelow {
		return append([]byte(nil), value...)
	}
	if cap(s.room)-len(s.room) < n {
		s.room = make([]byte, 0, max(n, min(arenaSize, left*n)))
	}
	at := len(s.room)
	s.room = append(s.room, value...)
	return s.room[at : at+n : at+n]
}

// readAll reads messages of a topic from the store, without its lock.
func (t *topic) readAll(seqs []uint64) ([]found, error) {
	if len(seqs) == 0 {
		return nil, nil
	}
	keys, fs := make([][]byte, len(seqs)), make([]found, len(seqs))
	room := make([]byte, 0, len(seqs)*(prefixSize+8))
	for i, seq := range seqs {
		at := len(room)
		room = appendNumberKey(room, t.journal.number, kindMessage, seq)
		keys[i] = room[at:]
	}
	var bodies arena
	err := t.e.o.Store.Read(keys, func(i int, value []byte) {
		if fs[i] = readFound(t.name, seqs[i], value); fs[i].message != nil {
			fs[i].message.Body = bodies.keep(fs[i].message.Body, len(seqs)-i)
		}
	})
	if err != nil {
		return nil, t.errUnreadable(err)
	}
	return fs, nil
}

func (t *topic) errUnreadable(err error) error {
	if errors.Is(err, driver.ErrClosed) {
		return refusal.Closed()
	}
	return driver.NewError(driver.ErrNotApplied, fmt.Sprintf("messages of topic %q could not be read", t.name),
		"see to the disk; ferry doctor checks every record", err)
}

// deliverStored builds deliveries once their claims survive the process, so that a message that ends the process was
// counted, and their messages survive what a publish promises to. What is not in memory is read; what cannot be decoded
// goes to the parse errors.
func (s *subscription) deliverStored(ctx context.Context, r, safety Round, claims []claim,
	now moment) ([]*driver.Delivery, error) {
	if err := s.e.outcome(context.WithoutCancel(ctx), r, false); err != nil {
		return nil, err
	}
	if safety != nil {
		if safe, err := s.awaitSafety(ctx, safety, claims); !safe {
			return nil, err
		}
	}
	var seqs []uint64
	for i := range claims {
		if claims[i].entry.is(onDisk) {
			seqs = append(seqs, claims[i].entry.seq)
		}
	}
	read, err := s.t.readAll(seqs)
	if err != nil {
		s.putBack(claims)
		return nil, err
	}
	ds := s.deliver(claims, read, now)
	s.discard(read)
	return ds, nil
}

// awaitSafety waits for a round to be synced. When the context ends, or the disk takes so long that leases would
// suffer, the claims are put back.
func (s *subscription) awaitSafety(ctx context.Context, safety Round, claims []claim) (safe bool, err error) {
	patience, cancel := context.WithTimeout(ctx, s.o.Lease/4)
	defer cancel()
	if safety.Wait(patience, true) == nil {
		return true, nil
	}
	if err := s.e.stopped(); err != nil {
		return false, err
	}
	s.putBack(claims)
	return false, ctx.Err()
}

// putBack releases claims that could not be delivered, uncounted. Their causes stay: nobody has seen them.
func (s *subscription) putBack(claims []claim) {
	now, ok := s.lock()
	if !ok {
		return
	}
	for i := range claims {
		if it := claims[i].item; it != nil {
			claims[i].end()
			s.g.comeBack(it, now)
		}
	}
	s.t.unlock(now)
}

// discard moves what could not be decoded to the parse errors.
func (s *subscription) discard(read []found) {
	read = slices.DeleteFunc(read, func(f found) bool { return f.problem == nil })
	if len(read) == 0 {
		return
	}
	now, ok := s.lock()
	if !ok {
		return
	}
	for i := range read {
		if e := s.t.log.get(read[i].seq); e != nil && e.state == fanned && e.is(onDisk) { // else it is so no longer
			s.t.spoil(e, &read[i], now)
		}
	}
	s.t.unlock(now)
}

// spoil moves a message that could not be read back to the parse errors, with the bytes that were found.
func (t *topic) spoil(e *entry, f *found, now moment) {
	t.stats.Bytes -= e.size()
	e.flags &^= onDisk | saved // what was found is stored again, as far as there is something
	e.when, e.stored, e.body = 0, 0, nil
	e.more().raw = f.raw
	t.stats.Bytes += e.size()
	t.invalidate(e, f.problem, now)
}

// overlay replaces the content of a message by what an operator wrote.
func overlay(m *driver.Message, c *entry) {
	edited := c.message("", c)
	m.Key, m.Body, m.ContentType, m.Priority = edited.Key, edited.Body, edited.ContentType, edited.Priority
	m.Headers, m.MaxAttempts, m.Retry = edited.Headers, edited.MaxAttempts, edited.Retry
}

// lockWarm is lockReaching for a move. The content of a delayed or held message that is edited is in memory then.
func (e *Engine) lockWarm(ctx context.Context, m *driver.Move, now moment) (*topic, error) {
	t, err := e.lockReaching(ctx, m.Target, now)
	if err != nil {
		return nil, err
	}
	en, err := t.find(m.Target)
	if m.Edit == nil || err != nil || en.state == fanned || !en.is(onDisk) {
		return t, nil // who changes the message says what is wrong with it
	}
	seq := en.seq
	t.unlock(now)
	read, err := t.readAll([]uint64{seq})
	if err == nil {
		t, err = e.lockExisting(m.Topic, now)
	}
	if err != nil {
		return nil, err
	}
	if current, _ := t.find(m.Target); current != en || !en.is(onDisk) {
		return t, nil
	}
	if err := read[0].problem; err != nil {
		t.unlock(now)
		return nil, driver.NewError(driver.ErrConflict, fmt.Sprintf("message %s cannot be read from the store",
			describe(m.Target)),
			"it is found among the invalid ones when it is due; ferry doctor checks every record", err)
	}
	en.recall(read[0].message, now)
	return t, nil
}

// recall brings the content of a message that is indexed back into memory. Its body becomes the entry's own.
func (e *entry) recall(m *driver.Message, now moment) {
	expiry, flags, body := e.expiry, e.flags, m.Body
	m.Body = nil
	e.set(m, now)
	e.expiry, e.body, e.published = expiry, body, m.PublishedAt.UnixNano()
	e.flags = e.flags&scheduled | flags&^(onDisk|scheduled)
}
