package engine

import (
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/container"
)

// found is a message as it was read, before it is known whether its state follows.
type found struct {
	seq     uint64
	head    messageHead
	message *driver.Message // its body is not its own
	size    int
	raw     []byte // in place of message, where that cannot be decoded
	state   []byte // the record of it, in a chunk of the index
}

// progressEvery is how many messages are read between two reports.
const progressEvery = 250_000

// readMessages reads all messages, but those of stretches that are recorded, and where they are.
func (r *restorer) readMessages() error {
	stretches, err := r.readStretches()
	from := appendNumberKey(nil, r.number, kindMessage, r.t.head) // what lies before is known to be gone
	for i := range stretches {
		s := &stretches[i]
		if err == nil {
			err = r.readBetween(from, appendNumberKey(nil, r.number, kindMessage, s.first))
		}
		r.keepStretch(s)
		from = appendNumberKey(nil, r.number, kindMessage, s.last+1)
	}
	if err != nil {
		return err
	}
	_, to := rangeOf(r.number, kindMessage)
	return r.readBetween(from, to)
}

// readBetween reads the messages of a part of the log.
func (r *restorer) readBetween(from, to []byte) error {
	var last *found
	err := r.scan(from, to, func(seq uint64, state bool, _, value []byte) error {
		if state {
			return r.readState(&last, seq, value)
		}
		if last != nil {
			r.restore(last, nil)
		}
		f := r.t.readFound(seq, value)
		last = &f
		if r.read++; r.read%progressEvery == 0 && r.progress != nil {
			r.progress(r.t.name, r.read)
		}
		return nil
	})
	if err == nil && last != nil {
		r.restore(last, nil)
	}
	return err
}

// readState restores the last message with its state.
func (r *restorer) readState(last **found, seq uint64, value []byte) error {
	s := &r.state
	if err := s.read(value, r.now); err != nil {
		return damaged(fmt.Sprintf("the state of message 0-%d of topic %q is damaged", seq, r.t.name), err)
	}
	if *last == nil || (*last).seq != seq {
		return damaged(fmt.Sprintf("message 0-%d of topic %q has a state, but is not there", seq, r.t.name), nil)
	}
	r.restore(*last, s)
	*last = nil
	return nil
}

// readFound reads a message. One that cannot be decoded is kept as it is, and goes to the parse errors when it is
// claimed.
func (t *topic) readFound(seq uint64, value []byte) found {
	f := found{seq: seq}
	head, env, err := splitMessage(value)
	if err != nil {
		f.head, f.raw = messageHead{state: fanned, fan: seq}, append([]byte{}, value...)
		return f
	}
	f.head = head
	if f.message, err = t.e.decodeMessage(env, t.name); err != nil {
		f.raw = append([]byte{}, env...)
		return f
	}
	f.size = len(f.message.Body)
	for k, v := range f.message.Headers {
		f.size += len(k) + len(v)
	}
	return f
}

// restore makes the entry of a message and puts it where it was.
func (r *restorer) restore(f *found, s *storedState) {
	if s == nil && r.staysCold(f) {
		r.keepCold(f)
		return
	}
	flags := saved
	if s != nil {
		flags |= recorded
	} else {
		s = &r.state
		s.unchanged(f.head, r.t.groups)
	}
	e := &entry{}
	if s.state == fanned {
		e = newPrompt()
	}
	e.seq, e.dueAt, e.flags = f.seq, container.Nowhere, flags
	e.state, e.fan, e.due = s.state, s.fan, r.now.read(s.due)
	if at := r.now.read(s.expires); at != never {
		e.expiry = &expiry{at: at, heapAt: container.Nowhere}
	}
	if f.message != nil && s.state != invalid {
		r.t.index(e, f)
	} else {
		r.keepRaw(e, f)
	}
	r.t.log.put(e.seq, e)
	r.t.e.stored.Add(1)
	r.place(e, s)
}

// index keeps what the indexes need of a message.
func (t *topic) index(e *entry, f *found) {
	m := f.message
	e.id, e.key, e.priority = m.ID, m.Key, m.Priority
	e.published, e.stored = m.PublishedAt.UnixNano(), uint32(f.size)
	if e.expiry == nil && m.TTL > 0 {
		e.expiry = &expiry{at: never, heapAt: container.Nowhere}
	}
	if e.expiry != nil {
		e.expiry.ttl = m.TTL
	}
	e.flags |= onDisk
	if m.OwnID {
		e.flags |= ownID
	}
	t.indexID(e)
}

func (t *topic) indexID(e *entry) {
	if _, taken := t.ids.Get(e.id); !taken {
		t.ids.Put(e)
		e.flags |= indexed
	}
}

// keepRaw keeps the bytes of a message that cannot be decoded: they are few, and shown to operators.
func (r *restorer) keepRaw(e *entry, f *found) {
	raw := f.raw
	if raw == nil { // it can be decoded by now, but somebody has to look at it
		rs := []reading{{seq: f.seq}}
		_ = r.t.readAll(rs) // what cannot be read is shown as empty
		raw = append([]byte{}, rs[0].raw...)
	}
	e.more().raw = raw
}

// place counts a message where it is.
func (r *restorer) place(e *entry, s *storedState) {
	t := r.t
	switch e.state {
	case delayed:
		t.stats.Delayed++
		t.delayed.Push(e.due, e.seq, e)
		t.gain(e)
	case held:
		t.stats.Held++
		t.gain(e)
	case invalid:
		e.extra.problem, e.extra.found = s.problem, s.settled
		t.invalid.put(e.seq, e)
		t.stats.Invalid++
	default:
		r.restoreItems(e, s)
	}
}

// restoreItems puts a message where each group had it. A state lists every group that has not settled it.
func (r *restorer) restoreItems(e *entry, s *storedState) {
	for i := range s.items {
		if g := r.groups[s.items[i].group]; g != nil {
			r.restoreItem(e, g, &s.items[i])
		}
	}
	if e.items != nil && e.items.g == nil {
		e.items = nil // the room was not used
	}
	if e.settled() {
		e.kept = 1
		at := r.now.tick
		if s.settled != 0 {
			at = r.now.read(s.settled)
		}
		r.settled = append(r.settled, settlement{seq: e.seq, at: at, kept: 1})
	}
}

func (r *restorer) restoreItem(e *entry, g *group, s *storedItem) {
	it := e.newItem(g)
	it.state, it.since = s.state, e.due
	if !s.plain {
		it.cause, it.Tail, it.Place, it.since = s.cause, s.Tail, s.Place, s.since
		it.failures, it.lost, it.more = s.failures, s.lost, s.more
		it.set(leaseLost, s.is(leaseLost))
		r.resolved[it] = s.resolved
		if s.begunClaim > 0 {
			r.begun[it] = s.begunClaim
		}
	}
	if g.count[it.state]++; it.state == ready {
		g.countNormal(it, 1)
	}
	switch {
	case it.state.live():
		r.t.gain(e)
		r.items[g] = append(r.items[g], it)
	case it.state == dead:
		g.graves.put(it.more.buried, it)
	}
}
