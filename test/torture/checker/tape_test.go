package checker

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	leaseTime = 10 * time.Second
	topic     = "orders"
	group     = "g"
	// The broker's clock differs from the processes' by this much.
	brokerAhead = int64(1_700_000_000 * time.Second)
)

// tape writes histories by hand. Each step takes a millisecond.
type tape struct {
	now    int64
	events []history.Event
	stats  driver.TopicStats
	tokens int
	// claimedBefore makes the broker's time of the next claims too early.
	claimedBefore int64
}

func newTape() *tape {
	t := &tape{now: int64(time.Hour), stats: driver.TopicStats{Topic: topic, Groups: []driver.GroupStats{{Group: group}}}}
	t.add(history.Event{Kind: history.KindRun, Run: &history.Run{
		Broker: "memory", Fault: "by hand", Groups: map[string][]string{topic: {group}}, Lease: leaseTime,
		RedeliverIn: time.Second, MaxAttempts: 3, MaxDeliveries: 5, Exact: true, RecoverIn: 2 * time.Second,
	}})
	return t
}

func (t *tape) run() *history.Run { return t.events[0].Run }

func (t *tape) add(e history.Event) {
	t.now += int64(time.Millisecond)
	e.At = t.now
	t.events = append(t.events, e)
}

func (t *tape) wait(d time.Duration) { t.now += int64(d) }

// message is one that the tests publish; its zero fields are plain.
func (t *tape) call(m history.Event) {
	m.Kind, m.Process, m.Topic = history.KindPublish, "producer-1.1", topic
	if m.Hash == "" {
		m.Hash = "hash of " + m.ID
	}
	t.add(m)
}

func (t *tape) answer(id string, kind history.Kind) {
	t.add(history.Event{Kind: kind, Process: "producer-1.1", ID: id})
}

func (t *tape) publish(m history.Event) {
	t.call(m)
	t.answer(m.ID, history.KindPublished)
	t.stats.Published++
	t.stats.Fanned++
	t.stats.Groups[0].Received++
}

// claim is a delivery to process; attempt 1, delivery 1 and cause first unless told.
func (t *tape) claim(process string, e history.Event) history.Event {
	t.tokens++
	e.Kind, e.Process, e.Topic, e.Group = history.KindClaimed, process, topic, group
	if e.Token == "" {
		e.Token = string(rune('A' + t.tokens - 1))
	}
	if e.Hash == "" {
		e.Hash = "hash of " + e.ID
	}
	e.Attempt, e.Deliveries = max(e.Attempt, 1), max(e.Deliveries, 1)
	if e.Cause == "" {
		e.Cause = causeFirst
	}
	e.ClaimedAt = t.now + brokerAhead - t.claimedBefore
	if e.PublishedAt == 0 {
		e.PublishedAt = t.events[0].At + brokerAhead
	}
	t.add(e)
	return e
}

// begin is the start of a handler that is recorded first.
func (t *tape) begin(c history.Event) {
	t.about(c, history.KindBegin)
	t.about(c, history.KindBegun)
	t.start(c)
}

func (t *tape) start(c history.Event) { t.about(c, history.KindDelivered) }

func (t *tape) handled(c history.Event, note string) {
	t.add(history.Event{Kind: history.KindHandled, Process: c.Process, ID: c.ID, Topic: topic, Group: group,
		Token: c.Token, Note: note})
}

func (t *tape) about(c history.Event, kind history.Kind) {
	t.add(history.Event{Kind: kind, Process: c.Process, ID: c.ID, Topic: topic, Group: group, Token: c.Token})
}

func (t *tape) settleCall(c history.Event, outcome string, after time.Duration) {
	t.add(history.Event{Kind: history.KindSettle, Process: c.Process, ID: c.ID, Group: group, Token: c.Token,
		Outcome: outcome, After: int64(after), Note: "max_attempts"})
}

func (t *tape) settle(c history.Event, outcome string, after time.Duration) {
	t.settleCall(c, outcome, after)
	t.about(c, history.KindSettled)
	switch outcome {
	case "ack":
		t.stats.Groups[0].Acked++
	case "dead":
		t.stats.Groups[0].Dead++
		t.listed(c.ID, "dead")
	}
}

// handle claims, starts and acknowledges a message.
func (t *tape) handle(process string, e history.Event) {
	c := t.claim(process, e)
	t.start(c)
	t.settle(c, "ack", 0)
}

// lose claims a message for a process that is killed, after it began as told, and waits for the end of the lease.
func (t *tape) lose(process string, e history.Event, begin func(*tape, history.Event)) {
	c := t.claim(process, e)
	if begin != nil {
		begin(t, c)
	}
	t.mark(history.KindCrash, process)
	t.wait(leaseTime)
}

func (t *tape) mark(kind history.Kind, process string) {
	t.add(history.Event{Kind: kind, Process: process, Note: "fault"})
}

// serverFault is one that concerns everybody for a time.
func (t *tape) serverFault(action string, lasts time.Duration) {
	t.add(history.Event{Kind: history.KindFault, Note: action})
	t.wait(lasts)
	t.add(history.Event{Kind: history.KindHeal, Note: action})
}

func (t *tape) listed(id, state string) {
	t.add(history.Event{Kind: history.KindListed, ID: id, Topic: topic, Group: group, State: state})
}

// check ends the tape with the broker's counters and judges it.
func (t *tape) check(tb testing.TB) *Report {
	tb.Helper()
	stats := t.stats
	t.add(history.Event{Kind: history.KindCounters, Topic: topic, Counters: &stats})
	r, err := Check(t.events)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

type ev = history.Event
