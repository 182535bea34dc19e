package engine

import (
	"fmt"

	"github.com/ferrymq/ferry/internal/container"
)

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
	p := pairing{topic: r.t.name, now: r.now, use: r.restore, wrong: func(record, problem string, cause error) error {
		return damaged(fmt.Sprintf("%s of topic %q %s", record, r.t.name, problem), cause)
	}}
	return p.read(r.t.e.o.Store, from, to)
}

// restore makes the entry of a message and puts it where it was.
func (r *restorer) restore(f *found, s *storedState) {
	if r.read++; r.read%progressEvery == 0 && r.progress != nil {
		r.progress(r.t.name, r.read)
	}
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
	if _, taken := t.ids.Get(e.id); !taken {
		t.ids.Put(e)
		e.flags |= indexed
	}
}

// keepRaw keeps the bytes of a message that cannot be decoded: they are few, and shown to operators.
func (r *restorer) keepRaw(e *entry, f *found) {
	raw := f.raw
	if raw == nil { // it can be decoded by now, but somebody has to look at it
		raw = []byte{} // what cannot be read is shown as empty
		key := appendNumberKey(nil, r.number, kindMessage, f.seq)
		_ = r.t.e.o.Store.Read([][]byte{key}, func(_ int, value []byte) {
			_, env, _ := splitMessage(value)
			raw = append(raw, env...)
		})
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
	it.state, it.at = s.state, e.due
	if !s.plain {
		it.cause, it.Tail, it.Place, it.at = s.cause, s.Tail, s.Place, s.at
		it.failures, it.lost, it.more = s.failures, s.lost, s.more
		it.set(leaseLost, s.is(leaseLost))
	}
	if g.count[it.state]++; it.state == ready {
		g.countNormal(it, 1)
		r.loseClaims(it, s)
	}
	switch {
	case it.state.live():
		r.t.gain(e)
		r.items[g] = append(r.items[g], it)
	case it.state == dead:
		g.graves.put(it.more.buried, it)
	}
}
