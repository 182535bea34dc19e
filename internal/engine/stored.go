package engine

import (
	"context"
	"errors"
	"fmt"

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

// reading is one message that is read from the store.
type reading struct {
	seq     uint64
	message *driver.Message
	raw     []byte
	problem error // why raw is no message
}

// shelf copies values that are only lent. Small ones share allocations, as bodies in memory do.
type shelf struct{ room []byte }

const shelfSize = 16 << 10

// keep copies a value, of which about so many are to come.
func (s *shelf) keep(value []byte, left int) []byte {
	if value == nil {
		return nil
	}
	n := len(value)
	if n >= shareBelow {
		return append([]byte(nil), value...)
	}
	if cap(s.room)-len(s.room) < n {
		s.room = make([]byte, 0, max(n, min(shelfSize, left*n)))
	}
	at := len(s.room)
	s.room = append(s.room, value...)
	return s.room[at : at+n : at+n]
}

// readAll reads messages of a topic from the store, without its lock.
func (t *topic) readAll(rs []reading) error {
	keys := make([][]byte, len(rs))
	room := make([]byte, 0, len(rs)*(prefixSize+8))
	for i := range rs {
		at := len(room)
		room = appendNumberKey(room, t.journal.number, kindMessage, rs[i].seq)
		keys[i] = room[at:]
	}
	var s shelf
	err := t.e.o.Store.Read(keys, func(i int, value []byte) { t.decodeInto(&rs[i], s.keep(value, len(rs)-i)) })
	if err != nil {
		return t.errUnreadable(err)
	}
	return nil
}

func (t *topic) errUnreadable(err error) error {
	if errors.Is(err, driver.ErrClosed) {
		return refusal.Closed()
	}
	return driver.NewError(driver.ErrNotApplied, fmt.Sprintf("messages of topic %q could not be read", t.name),
		"see to the disk; ferry doctor checks every record", err)
}

var errMissing = errors.New("its record is missing from the store")

// decodeInto reads a message from a record that is its own.
func (t *topic) decodeInto(r *reading, own []byte) {
	r.raw, r.problem = []byte{}, errMissing
	if own == nil {
		return
	}
	env, err := envelopeOf(own)
	if r.raw = env; err != nil {
		r.raw, r.problem = own, err
		return
	}
	r.message, r.problem = t.e.decodeMessage(env, t.name)
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
	var rs []reading
	for i := range claims {
		if claims[i].entry.is(onDisk) {
			rs = append(rs, reading{seq: claims[i].entry.seq})
		}
	}
	if len(rs) == 0 {
		return s.deliver(claims, nil, now), nil
	}
	if err := s.t.readAll(rs); err != nil {
		s.putBack(claims)
		return nil, err
	}
	return s.deliver(claims, rs, now), s.discard(claims, rs)
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
func (s *subscription) discard(claims []claim, rs []reading) error {
	bad := make(map[uint64]*reading)
	for i := range rs {
		if rs[i].problem != nil {
			bad[rs[i].seq] = &rs[i]
		}
	}
	if len(bad) == 0 {
		return nil
	}
	now, ok := s.lock()
	if !ok {
		return nil
	}
	for i := range claims {
		it := claims[i].item
		if it == nil || bad[it.e.seq] == nil {
			continue
		}
		s.t.spoil(it.e, bad[it.e.seq], now)
	}
	s.t.unlock(now)
	return nil
}

// spoil moves a message that could not be read back to the parse errors, with the bytes that were found.
func (t *topic) spoil(e *entry, r *reading, now moment) {
	t.stats.Bytes -= e.size()
	e.flags &^= onDisk | saved // what was found is stored again, as far as there is something
	e.delay, e.stored, e.body = 0, 0, nil
	e.more().raw = r.raw
	t.stats.Bytes += e.size()
	t.invalidate(e, r.problem, now)
}

// overlay replaces the content of a message by what an operator wrote.
func overlay(m *driver.Message, c *entry) {
	edited := c.message("", c)
	m.Key, m.Body, m.ContentType, m.Priority = edited.Key, edited.Body, edited.ContentType, edited.Priority
	m.Headers, m.MaxAttempts, m.Retry = edited.Headers, edited.MaxAttempts, edited.Retry
}

// warm brings the content of a delayed or held message back into memory before it is edited. It returns the topic
// locked, unless it fails.
func (e *Engine) warm(t *topic, m *driver.Move, now moment) (*topic, error) {
	en, err := t.find(m.Target)
	if m.Edit == nil || err != nil || en.state == fanned || !en.is(onDisk) {
		return t, nil
	}
	rs := []reading{{seq: en.seq}}
	t.unlock(now)
	if err := t.readAll(rs); err != nil {
		return nil, err
	}
	t, err = e.lockExisting(m.Topic, now)
	if err != nil {
		return nil, err
	}
	if current, _ := t.find(m.Target); current != en || !en.is(onDisk) {
		return t, nil
	}
	if err := rs[0].problem; err != nil {
		t.unlock(now)
		return nil, driver.NewError(driver.ErrConflict, fmt.Sprintf("message %s cannot be read from the store",
			describe(m.Target)),
			"it is found among the invalid ones when it is due; ferry doctor checks every record", err)
	}
	due, expiry, flags := en.due, en.expiry, en.flags
	en.set(rs[0].message, now)
	en.published = rs[0].message.PublishedAt.UnixNano()
	en.due, en.expiry = due, expiry
	en.flags = en.flags&scheduled | flags&^(onDisk|scheduled)
	return t, nil
}
