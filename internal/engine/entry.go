package engine

import (
	"iter"
	"maps"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/container"
)

type entryState uint8

const (
	atRest  entryState = iota // not stored yet, or removed
	delayed                   // belongs to the topic until due
	held                      // belongs to the topic until moved or deleted
	fanned                    // belongs to the groups
	invalid                   // could not be decoded; belongs to the topic
	cold                      // belongs to the groups, and leaves memory when the step ends
)

// entry is one stored message. It is compact, because there may be millions: what few messages have is in extra.
// Once fanned its content never changes, so that who claimed it can read it without the lock of the topic.
type entry struct {
	seq         uint64 // its place in the log
	fan         uint64 // its place among what became ready; zero before that
	id          string
	key         string
	body        []byte
	contentType *string // shared with other messages; nil: none
	published   int64   // wall time, nanoseconds
	when        int64   // its publisher wanted it: nanoseconds of wall time if scheduled, else from then on
	due         tick    // when it is due; once fanned, when it became ready
	expiry      *expiry // nil without a TTL
	extra       *extra
	items       *item  // as the groups see it, linked by sibling
	dueAt       int32  // its place in the heap of delayed messages
	stored      uint32 // size of what is only in the store, if onDisk
	live        uint16 // how many groups have not settled it; 1 while it belongs to the topic
	kept        uint8  // how often every group had settled it, where settled messages are kept
	unread      uint8  // claims that were not settled by their holder: see spent.go
	flags       entryFlags
	priority    driver.Priority
	state       entryState
}

// entryFlags are one byte: see TestSizes for why that matters.
type entryFlags uint8

const (
	ownID     entryFlags = 1 << iota // the producer chose the id
	indexed                          // found by its id
	scheduled                        // delay is a time
	touched                          // changed in this step
	saved                            // the store has it as it is
	recorded                         // the store has a record of its state
	onDisk                           // its content is only in the store
	cached                           // its content is also in the store
)

func (e *entry) is(f entryFlags) bool { return e.flags&f != 0 }

// expiry is what messages with a TTL have.
type expiry struct {
	ttl    time.Duration
	at     tick  // never: an operator spared it
	heapAt int32 // its place in the heap of expiries
}

// extra is what few messages have.
type extra struct {
	headers     map[string]string
	at          time.Time // a schedule that nanoseconds cannot express
	dedupID     string
	dedupWindow time.Duration
	maxAttempts int
	retry       *driver.RetryPolicy
	raw         []byte // not decoded yet, or not decodable
	problem     string
	found       int64 // when the problem was, wall time in nanoseconds; zero: not known
}

// prompt is an entry that is due at once, and room for it in the first group: one allocation.
type prompt struct {
	entry
	first item
}

func newPrompt() *entry {
	p := &prompt{}
	p.first.set(besideEntry, true)
	p.items = &p.first
	return &p.entry
}

// newEntry copies a message. Nothing of the caller's but immutable strings is kept.
func (e *Engine) newEntry(m *driver.Message, now moment) *entry {
	var en *entry
	due := dueOf(m, now)
	if due <= now.tick {
		en = e.spent.take()
	} else {
		en = &entry{}
	}
	en.published, en.due = now.at.UnixNano(), due
	en.dueAt = container.Nowhere
	last := e.contentType.Load()
	en.contentType = last
	en.set(m, now)
	if en.contentType != last {
		e.contentType.Store(en.contentType)
	}
	return en
}

// set copies all of a message but when it was published.
func (e *entry) set(m *driver.Message, now moment) {
	e.id, e.flags = m.ID, e.flags&(touched|saved|recorded)
	if m.OwnID {
		e.flags |= ownID
	}
	e.expiry = nil
	if m.TTL > 0 {
		e.expiry = &expiry{ttl: m.TTL, at: now.after(m.TTL), heapAt: container.Nowhere}
	}
	e.setContent(m)
	if m.DedupID != "" {
		x := e.more()
		x.dedupID, x.dedupWindow = m.DedupID, m.DedupWindow
	}
	if e.when = int64(m.Delay); !m.At.IsZero() {
		e.setSchedule(m.At)
	}
}

func dueOf(m *driver.Message, now moment) tick {
	switch {
	case m.Delay == driver.Hold:
		return never
	case !m.At.IsZero():
		return now.after(m.At.Sub(now.at))
	}
	return now.after(m.Delay)
}

// setContent copies what an edit may change.
func (e *entry) setContent(m *driver.Message) {
	e.key, e.body, e.priority = m.Key, append(e.body[:0], m.Body...), m.Priority
	if e.mediaType() != m.ContentType {
		own := m.ContentType
		e.contentType = &own
	}
	if e.extra == nil && len(m.Headers) == 0 && m.MaxAttempts == 0 && m.Retry == nil {
		return
	}
	x := e.more()
	x.headers, x.maxAttempts, x.retry = maps.Clone(m.Headers), m.MaxAttempts, cloneRetry(m.Retry)
}

func (e *entry) setSchedule(at time.Time) {
	e.flags |= scheduled
	if y := at.Year(); y > 1700 && y < 2200 {
		e.when = at.UnixNano()
		return
	}
	e.more().at = at
}

func (e *entry) more() *extra {
	if e.extra == nil {
		e.extra = &extra{}
	}
	return e.extra
}

func cloneRetry(p *driver.RetryPolicy) *driver.RetryPolicy {
	if p == nil {
		return nil
	}
	c := *p
	c.Delays = append([]time.Duration(nil), p.Delays...)
	return &c
}

// fill writes the message into m, all but its body. Content and extra come from c, which differs from e after an edit.
func (e *entry) fill(m *driver.Message, topic string, c *entry) {
	m.ID, m.OwnID, m.Topic = e.id, e.is(ownID), topic
	m.Key, m.ContentType, m.Priority = c.key, c.mediaType(), c.priority
	if e.expiry != nil {
		m.TTL = e.expiry.ttl
	}
	m.PublishedAt = time.Unix(0, e.published)
	if !e.is(scheduled) {
		m.Delay = time.Duration(e.when)
	} else if m.At = time.Unix(0, e.when).UTC(); e.extra != nil && !e.extra.at.IsZero() {
		m.At = e.extra.at
	}
	if x := c.extra; x != nil {
		m.Headers, m.MaxAttempts, m.Retry = maps.Clone(x.headers), x.maxAttempts, cloneRetry(x.retry)
	}
	if x := e.extra; x != nil {
		m.DedupID, m.DedupWindow = x.dedupID, x.dedupWindow
	}
}

// message returns a copy of the message with the content of c.
func (e *entry) message(topic string, c *entry) *driver.Message {
	m := &driver.Message{}
	e.fill(m, topic, c)
	if len(c.body) > 0 {
		m.Body = append([]byte(nil), c.body...)
	}
	return m
}

// mediaType is the content type.
func (e *entry) mediaType() string {
	if e.contentType == nil {
		return ""
	}
	return *e.contentType
}

// expires is when the message is past its TTL.
func (e *entry) expires() tick {
	if e.expiry == nil {
		return never
	}
	return e.expiry.at
}

func (e *entry) expired(now moment) bool { return e.expiry != nil && e.expiry.at <= now.tick }

// Name is its id, for the table of ids.
func (e *entry) Name() string { return e.id }

func (e *entry) ref() driver.Ref { return driver.Ref{Pos: e.seq} }

// size is what counts against the bound in bytes: the body and the headers.
func (e *entry) size() int64 {
	if e.is(onDisk) {
		return int64(e.stored)
	}
	n := len(e.body)
	if x := e.extra; x != nil {
		n += len(x.raw)
		for k, v := range x.headers {
			n += len(k) + len(v)
		}
	}
	return int64(n)
}

// all are the message as each group sees it. Who is given one may remove it.
func (e *entry) all() iter.Seq[*item] {
	return func(yield func(it *item) bool) {
		for it := e.items; it != nil; {
			next := it.sibling
			if it.g != nil && !yield(it) { // else it is room that is not used
				return
			}
			it = next
		}
	}
}

// item returns the message as g sees it, or nil.
func (e *entry) item(g *group) *item {
	for it := e.items; it != nil; it = it.sibling {
		if it.g == g {
			return it
		}
	}
	return nil
}

// settled reports whether every group is done with it: nobody has it before them, or as a dead letter.
func (e *entry) settled() bool {
	return e.live == 0 && !e.any(dead)
}

// any reports whether some group has it in a state.
func (e *entry) any(state itemState) bool {
	for it := e.items; it != nil; it = it.sibling {
		if it.state == state {
			return true
		}
	}
	return false
}
