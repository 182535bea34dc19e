package checker

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/test/torture/history"
)

// ledger is the history sorted by what it is about.
type ledger struct {
	run       *history.Run
	messages  map[string]*message
	order     []*message // as first published
	pairs     map[pair]*course
	courses   []*course
	processes map[string]*process
	listed    map[pair][]string // states; the group is empty for what belongs to the topic
	problems  []history.Event   // that the driver's own audit found
	publishes []int64           // when publishes were acknowledged
	claims    []int64           // when messages arrived at consumers
	counters  []history.Event
	strangers []history.Event // claims of messages that nobody published
	faults    []span          // of all processes
	crashes   []history.Event
	closes    []int64
	offset    int64                 // see clockOffset
	returned  map[keyReturn][]int64 // filled when first asked for
}

type pair struct{ id, group string }

// message is what a producer did with one id.
type message struct {
	history.Event       // of the first publish call
	accepted      int64 // when it was acknowledged; 0 never
	calls         int
	pending       int // calls without an answer
	unknown       bool
}

// maybe says that it may have been stored although no answer says so.
func (m *message) maybe() bool { return m.pending > 0 || m.unknown }

// course is what happened to one message in one group: its leases, in order of the broker's clock.
type course struct {
	pair
	*message
	leases []*lease
}

// lease is one claim of one message.
type lease struct {
	history.Event         // claimed
	from          int64   // about when the broker made it, by our clock: it may have arrived much later
	claimedAt     int64   // the same, even if that was later than it arrived
	claims        int     // how often Receive returned this very token
	begin         int64   // when the start of its handler was to be recorded; 0 never
	begun         bool    // that was answered
	starts        []int64 // of the handler
	handled       int64   // when it returned; 0 never
	succeeded     bool
	extended      int64 // when the last acknowledged extension was asked for
	settles       []*settlement
}

type settlement struct {
	called  int64
	outcome string
	reason  string
	after   int64
	result  history.Kind // KindSettle while there was no answer
}

type process struct {
	closing   int64 // from when on it gave back what it held
	publishes bool
}

// span is when something was wrong with a process, or with all if it names none. A crash lasts for ever.
type span struct {
	process, fault string
	from, to       int64
	crash          bool
	step           int64 // how far the broker's clock was set
}

func (s span) overlaps(from, to int64) bool { return s.from <= to && s.to >= from }

const forever = math.MaxInt64

func read(events []history.Event) *ledger {
	l := &ledger{
		messages: map[string]*message{}, pairs: map[pair]*course{}, processes: map[string]*process{},
		listed: map[pair][]string{},
	}
	tokens := map[leaseKey]*lease{}
	for i := range events {
		switch e := &events[i]; e.Kind {
		case history.KindRun:
			l.run = e.Run
		case history.KindPublish, history.KindPublished, history.KindUnknown, history.KindRefused:
			l.publish(e)
		case history.KindFault, history.KindHeal, history.KindCrash, history.KindClose:
			l.harm(e)
		case history.KindListed:
			p := pair{e.ID, e.Group}
			l.listed[p] = append(l.listed[p], e.State)
		case history.KindProblem:
			l.problems = append(l.problems, *e)
		case history.KindCounters:
			l.counters = append(l.counters, *e)
		default:
			l.consume(tokens, e)
		}
	}
	l.offset = l.clockOffset()
	for _, c := range l.courses {
		for _, h := range c.leases {
			h.claimedAt = h.ClaimedAt + l.offset - l.setBy(h)
			h.from = min(h.At, h.claimedAt)
		}
		slices.SortStableFunc(c.leases, claimOrder)
	}
	return l
}

// claimOrder compares leases of one message. Tokens tell best: they are a nonce and a counter. Where the nonces differ,
// the broker's clock decides.
func claimOrder(a, b *lease) int {
	nonceA, countA := splitToken(a.Token)
	nonceB, countB := splitToken(b.Token)
	if nonceA != "" && nonceA == nonceB {
		return cmp.Compare(countA, countB)
	}
	return cmp.Or(cmp.Compare(a.claimedAt, b.claimedAt), cmp.Compare(a.At, b.At))
}

func splitToken(token string) (nonce string, count uint64) {
	i := strings.LastIndexByte(token, '-')
	if i < 0 {
		return "", 0
	}
	count, err := strconv.ParseUint(token[i+1:], 10, 64)
	if err != nil {
		return "", 0
	}
	return token[:i], count
}

type leaseKey struct {
	pair
	token string
}

func (l *ledger) publish(e *history.Event) {
	m := l.messages[e.ID]
	if m == nil {
		if e.Kind != history.KindPublish {
			return
		}
		m = &message{Event: *e}
		l.messages[e.ID] = m
		l.order = append(l.order, m)
	}
	if e.Kind == history.KindPublish {
		l.process(e.Process).publishes = true
		m.calls++
		m.pending++
		return
	}
	m.pending--
	switch e.Kind {
	case history.KindPublished:
		l.publishes = append(l.publishes, e.At)
		if m.accepted == 0 {
			m.accepted = e.At
		}
	case history.KindUnknown:
		m.unknown = true
	}
}

func (l *ledger) harm(e *history.Event) {
	s := span{process: e.Process, fault: e.Note, from: e.At, to: forever, crash: e.Kind == history.KindCrash, step: e.Step}
	switch e.Kind {
	case history.KindCrash:
		l.crashes = append(l.crashes, *e)
		l.faults = append(l.faults, s)
	case history.KindFault:
		l.faults = append(l.faults, s)
	case history.KindHeal:
		l.heal(e)
	case history.KindClose:
		if p := l.process(e.Process); p.closing == 0 {
			p.closing = e.At
		}
		l.closes = append(l.closes, e.At)
	}
}

// heal ends the oldest open fault of that name and process. Whom a reset has made to leave its group learns of it with
// its next heartbeat, and until then goes on; two of them are the most.
func (l *ledger) heal(e *history.Event) {
	for i := range l.faults {
		s := &l.faults[i]
		if !s.crash && s.to == forever && s.process == e.Process && s.fault == e.Note {
			if s.to = e.At; s.fault == history.Reset {
				s.to += 2 * int64(l.run.Heartbeat)
			}
			return
		}
	}
}

func (l *ledger) process(name string) *process {
	if l.processes[name] == nil {
		l.processes[name] = &process{}
	}
	return l.processes[name]
}

func (l *ledger) consume(tokens map[leaseKey]*lease, e *history.Event) {
	key := leaseKey{pair{e.ID, e.Group}, e.Token}
	held := tokens[key]
	if e.Kind == history.KindClaimed {
		l.claims = append(l.claims, e.At)
		if held != nil {
			held.claims++
			return
		}
		c := l.course(e)
		if c == nil {
			return
		}
		held = &lease{Event: *e, claims: 1}
		tokens[key] = held
		c.leases = append(c.leases, held)
		return
	}
	if held == nil {
		return
	}
	switch e.Kind {
	case history.KindBegin:
		held.begin = e.At
	case history.KindBegun:
		held.begun = true
	case history.KindDelivered:
		held.starts = append(held.starts, e.At)
	case history.KindHandled:
		held.handled, held.succeeded = e.At, e.Note == history.HandledOK
	case history.KindExtended:
		held.extended = max(held.extended, e.Called)
	case history.KindSettle:
		held.settles = append(held.settles, &settlement{called: e.At, outcome: e.Outcome, reason: e.Note, after: e.After,
			result: e.Kind})
	case history.KindSettled, history.KindSettleRefused, history.KindSettleUnknown:
		if s := held.open(); s != nil {
			s.result = e.Kind
		}
	}
}

func (l *ledger) course(e *history.Event) *course {
	m := l.messages[e.ID]
	if m == nil || m.Topic != e.Topic {
		l.strangers = append(l.strangers, *e)
		return nil
	}
	p := pair{e.ID, e.Group}
	c := l.pairs[p]
	if c == nil {
		c = &course{pair: p, message: m}
		l.pairs[p] = c
		l.courses = append(l.courses, c)
	}
	return c
}

// open returns the oldest settlement without an answer.
func (h *lease) open() *settlement {
	for _, s := range h.settles {
		if s.result == history.KindSettle {
			return s
		}
	}
	return nil
}

func (s *settlement) accepted() bool { return s.result == history.KindSettled }

// possible says that it was applied, or may have been.
func (s *settlement) possible() bool { return s.result != history.KindSettleRefused }

// final says that it ends the course of the message.
func (s *settlement) final() bool {
	return s.outcome == "ack" || s.outcome == "dead" || s.outcome == "drop"
}

// ended says that it ends the course, or may have.
func (s *settlement) ended() bool { return s.final() && s.possible() }

// finished says that the holder was told that the message was done.
func (h *lease) finished() bool {
	return slices.ContainsFunc(h.settles, func(s *settlement) bool { return s.final() && s.accepted() })
}

// returns says that it gives the message back for another delivery.
func (s *settlement) returns() bool { return s.outcome == "retry" || s.outcome == "release" }

// settled returns the first settlement of the course that fits.
func (c *course) settled(fits func(*settlement) bool) *settlement {
	for _, h := range c.leases {
		for _, s := range h.settles {
			if fits(s) {
				return s
			}
		}
	}
	return nil
}
