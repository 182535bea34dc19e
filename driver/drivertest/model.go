package drivertest

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// model is what the contract says about one topic, in slices and loops and nothing clever. It does not predict: it
// knows in which state every message is, and judges what a driver delivers, answers and counts.
type model struct {
	now     time.Time
	paused  bool
	pending []*message // delayed or held: they belong to the topic
	groups  []*group
	places  int // of becoming ready

	published, fanned, expired, cancelled uint64

	dedups []remembered
}

// message is a published message.
type message struct {
	*driver.Message
	held    bool
	moved   bool      // an operator ran it before it was due
	due     time.Time // while it is pending
	expires time.Time // zero: never
}

// remembered is an id inside its window.
type remembered struct {
	id, first string
	until     time.Time
}

// group is one group of the topic.
type group struct {
	name    string
	order   driver.Order
	paused  bool
	entries []*entry // everything not settled, dead letters included

	received, acked, dropped, expired, cancelled, redelivered, retried, died uint64
}

// entry is a message as one group sees it.
type entry struct {
	*message
	state driver.State
	place int
	// loose says that the contract leaves its place among others open: it failed, was lost or was moved.
	loose      bool
	due        time.Time // while it waits
	attempt    int
	deliveries int // 0: the contract does not say, after a replay
	causes     []driver.Cause
	lost       bool     // once at least
	silent     []string // tokens of begun deliveries whose loss counted

	begun  bool // the delivery under way
	holder *member
	claim  int // which Receive of its holder took it
	token  string
	lease  time.Time
}

// member is a subscription.
type member struct {
	g      *group
	o      driver.SubscribeOptions
	claims int             // Receives so far
	had    map[string]bool // tokens of its deliveries
}

func (m *model) group(name string) *group {
	for _, g := range m.groups {
		if g.name == name {
			return g
		}
	}
	return nil
}

func (g *group) find(id string) *entry {
	for _, e := range g.entries {
		if e.ID == id {
			return e
		}
	}
	return nil
}

func (g *group) remove(e *entry) {
	g.entries = slices.DeleteFunc(g.entries, func(x *entry) bool { return x == e })
}

func (m *model) findPending(id string) *message {
	for _, p := range m.pending {
		if p.ID == id {
			return p
		}
	}
	return nil
}

func (m *model) removePending(p *message) {
	m.pending = slices.DeleteFunc(m.pending, func(x *message) bool { return x == p })
}

// publish returns what the receipt of msg must say: its own id, or that of the message it repeats.
func (m *model) publish(msg *driver.Message) (id string, duplicate bool) {
	for _, r := range m.dedups {
		if r.id == msg.DedupID && m.now.Before(r.until) {
			return r.first, true
		}
	}
	if msg.DedupID != "" {
		m.dedups = append(m.dedups, remembered{msg.DedupID, msg.ID, m.now.Add(msg.DedupWindow)})
	}
	if len(m.groups) == 0 {
		m.groups = append(m.groups, &group{name: driver.DefaultGroup})
	}
	p := &message{Message: msg, held: msg.Delay == driver.Hold}
	if msg.TTL > 0 {
		p.expires = m.now.Add(msg.TTL)
	}
	m.published++
	if msg.Delay <= 0 {
		m.fanOut(p)
		return msg.ID, false
	}
	p.due = m.now.Add(msg.Delay)
	m.pending = append(m.pending, p)
	return msg.ID, false
}

// fanOut makes a message ready for every group there is.
func (m *model) fanOut(p *message) {
	m.fanned++
	m.places++
	for _, g := range m.groups {
		e := &entry{message: p, state: driver.StateReady, place: m.places, attempt: 1, deliveries: 1,
			causes: []driver.Cause{driver.CauseFirst}}
		if p.moved {
			e.causes = append(e.causes, driver.CauseReplay)
		}
		g.received++
		g.entries = append(g.entries, e)
	}
}

// back makes an entry ready again, or ends it when its time is up.
func (m *model) back(g *group, e *entry, causes ...driver.Cause) {
	e.state, e.holder, e.causes = driver.StateReady, nil, causes
	m.expireNow(g, e)
}

// wait makes an entry due after a while; zero means now.
func (m *model) wait(g *group, e *entry, after time.Duration, causes ...driver.Cause) {
	m.back(g, e, causes...)
	if after > 0 && e.state == driver.StateReady {
		e.state, e.due = driver.StateWaiting, m.now.Add(after)
	}
}

func (m *model) expireNow(g *group, e *entry) {
	if !e.expires.IsZero() && !m.now.Before(e.expires) {
		e.state = driver.StateDone
		g.expired++
		g.remove(e)
	}
}

// behind returns what the holder of e has of its key behind it.
func (g *group) behind(e *entry) []*entry {
	var tail []*entry
	for _, x := range g.entries {
		if e.Key != "" && x.Key == e.Key && x.state == driver.StateInflight && x.place > e.place {
			tail = append(tail, x)
		}
	}
	return tail
}

// returnTail gives back what is held behind e, uncounted. Without causes it keeps those it was delivered with.
func (m *model) returnTail(g *group, e *entry, causes ...driver.Cause) {
	for _, x := range g.behind(e) {
		if len(causes) == 0 {
			m.back(g, x, x.causes...)
			continue
		}
		m.back(g, x, causes...)
	}
}

// close returns everything a member holds.
func (m *model) close(s *member) {
	for _, e := range s.g.entries {
		for _, token := range slices.Clone(e.silent) {
			if s.had[token] {
				e.hear(token)
			}
		}
	}
	for _, e := range slices.Clone(s.g.entries) {
		if e.holder == s {
			m.back(s.g, e, driver.CauseReleased, driver.CauseRebalance)
		}
	}
}

// holds returns what a member has in flight.
func (s *member) holds() int {
	n := 0
	for _, e := range s.g.entries {
		if e.holder == s {
			n++
		}
	}
	return n
}

// settle applies an outcome, and reports whether the delivery was still held.
func (m *model) settle(s *member, x driver.Settlement) bool {
	e := s.g.find(x.Delivery.ID)
	if e == nil || e.state != driver.StateInflight || e.holder != s || e.token != x.Delivery.Token.String() {
		m.hear(s, x.Delivery)
		return false
	}
	g := s.g
	for _, msg := range x.Emit {
		m.publish(msg)
	}
	if g.order == driver.Strict && (x.Outcome == driver.Retry || x.Outcome == driver.Release) {
		m.returnTail(g, e)
	}
	switch x.Outcome {
	case driver.Ack:
		g.acked++
		g.remove(e)
	case driver.Drop:
		g.dropped++
		g.remove(e)
	case driver.Dead:
		g.died++
		e.state, e.holder, e.attempt = driver.StateDead, nil, e.attempt+1
	case driver.Retry:
		g.retried++
		e.attempt++
		e.loose = e.loose || e.Key == "" || g.order == driver.Relaxed
		m.wait(g, e, x.After, driver.CauseRetry)
	case driver.Release:
		e.loose = e.loose || (x.After > 0 && g.order == driver.Relaxed)
		causes := []driver.Cause{driver.CauseReleased}
		if x.Unseen {
			causes = e.causes
		}
		m.wait(g, e, x.After, causes...)
	}
	return true
}

// hear takes back the count of a lost delivery whose holder speaks again.
func (m *model) hear(s *member, d *driver.Delivery) {
	if e := s.g.find(d.ID); e != nil {
		e.hear(d.Token.String())
	}
}

func (x *entry) hear(token string) {
	i := slices.Index(x.silent, token)
	if i < 0 || x.state == driver.StateDead {
		return
	}
	x.silent = slices.Delete(x.silent, i, i+1)
	x.deliveries = max(0, x.deliveries-1)
}

// purge removes what is queued, of one group or of the topic, and returns how many.
func (m *model) purge(name string) int {
	n := 0
	for _, g := range m.groups {
		if name != "" && g.name != name {
			continue
		}
		before := len(g.entries)
		g.entries = slices.DeleteFunc(g.entries, func(e *entry) bool {
			return e.state == driver.StateReady || e.state == driver.StateWaiting
		})
		n += before - len(g.entries)
		g.cancelled += uint64(before - len(g.entries))
	}
	if name == "" {
		before := len(m.pending)
		m.pending = slices.DeleteFunc(m.pending, func(p *message) bool { return !p.held })
		n += before - len(m.pending)
		m.cancelled += uint64(before - len(m.pending))
	}
	return n
}

// delete removes a message in all groups, or in one, and returns the kind of error the driver must answer.
func (m *model) delete(t driver.Target) error {
	if p := m.findPending(t.ID); p != nil {
		m.removePending(p)
		m.cancelled++
		return nil
	}
	found := false
	for _, g := range m.groups {
		if e := g.find(t.ID); e != nil && (t.Group == "" || t.Group == g.name) {
			found = true
			if e.state == driver.StateInflight {
				return driver.ErrConflict
			}
		}
	}
	if !found {
		return driver.ErrNotFound
	}
	for _, g := range m.groups {
		if e := g.find(t.ID); e != nil && (t.Group == "" || t.Group == g.name) {
			g.cancelled++
			g.remove(e)
		}
	}
	return nil
}

// move makes a message due, and returns the kind of error the driver must answer.
func (m *model) move(x driver.Move) error {
	if p := m.findPending(x.ID); p != nil {
		p.held, p.moved, p.due = false, true, m.now.Add(x.After)
		if x.After <= 0 {
			m.removePending(p)
			m.fanOut(p)
		}
		return nil
	}
	g := m.group(x.Group)
	e := g.find(x.ID)
	switch {
	case e == nil:
		return driver.ErrNotFound
	case e.state == driver.StateDead:
		m.places++
		e.attempt, e.deliveries, e.loose, e.place = 1, 0, e.Key == "", m.places
		e.lost, e.silent = false, nil
		m.wait(g, e, x.After, driver.CauseReplay)
	case e.state == driver.StateWaiting:
		e.loose = e.loose || e.Key == ""
		m.wait(g, e, x.After, append(slices.Clone(e.causes), driver.CauseReplay)...)
	default:
		return driver.ErrConflict
	}
	return nil
}
