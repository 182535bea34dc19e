package drivertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Times that cases are made of. A delay of one unit is long enough to see that nothing comes before it.
const (
	unit      = time.Second
	quiet     = 200 * time.Millisecond
	longLease = 10 * time.Minute
)

// topic is what a case uses when one topic is enough; other is a second one.
const (
	topic = "jobs"
	other = "follow-ups"
)

// T is what a case works with: a fresh driver, and verbs that make the case read like the semantic it checks.
type T struct {
	testing.TB
	Harness
	driver.Driver
	Caps driver.Capabilities

	ids  atomic.Int64
	open *window // what a complaint is about time after
}

func newT(tb testing.TB, h Harness) *T {
	d := h.Open(tb)
	t := &T{TB: tb, Harness: h, Driver: d, Caps: d.Capabilities()}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), h.Patience)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return t
}

// ctx ends when the suite loses patience with the driver.
func (t *T) ctx() context.Context { return t.within(t.Patience) }

func (t *T) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// ok ends the case when err is not nil.
func (t *T) ok(err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// wantErr demands an error of this kind.
func (t *T) wantErr(err, kind error, what string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%s: got error %v, want %v", what, err, kind)
	}
}

// equal compares anything, with a readable difference.
func (t *T) equal(got, want any, what string) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Millisecond)); d != "" {
		t.Fatalf("%s differs (-want +got):\n%s", what, d)
	}
}

// whole demands that got is the published message with nothing lost or changed.
func (t *T) whole(got, want *driver.Message) {
	t.Helper()
	w := want.Clone()
	w.PublishedAt = got.PublishedAt
	t.equal(got, w, "message "+want.ID)
}

// until waits for what must become true, looking again and again.
func (t *T) until(what string, cond func() bool) {
	t.Helper()
	start := time.Now()
	for wait := time.Millisecond; !cond(); wait = min(2*wait, 50*time.Millisecond) {
		if time.Since(start) > t.Patience+t.stalledSince(start) {
			t.TB.Fatalf("waited %v in vain: %s", t.Patience, what)
		}
		time.Sleep(wait)
	}
}

// pass lets time go by where the passing itself is what is tested, never to wait for something.
func (t *T) pass(d time.Duration) { time.Sleep(d) }

// random returns random numbers that FERRY_SEED repeats.
func (t *T) random(stream uint64) *rand.Rand {
	t.Logf("repeat with FERRY_SEED=%d", t.seed)
	return rand.New(rand.NewPCG(t.seed, stream))
}

// onTime demands that now is at or after due, and not much later, stalls of the machine aside.
func (t *T) onTime(due time.Time, what string) {
	t.Helper()
	now := time.Now()
	if early := due.Sub(now); early > t.resolution() {
		t.Errorf("%s came %v early", what, early)
	}
	if late, stalled := now.Sub(due), t.stalledSince(due); late > t.Late+stalled {
		t.Errorf("%s came %v late, more than %v, and %v that stalls of the machine explain", what, late, t.Late, stalled)
	}
}

// resolution is how early something may seem, because a backend counts in milliseconds and ours is another clock.
func (t *T) resolution() time.Duration {
	if t.Virtual {
		return 0
	}
	return 2 * time.Millisecond
}

// newID returns an id no other message of the case has.
func (t *T) newID() string { return fmt.Sprintf("m%06d", t.ids.Add(1)) }

// msg returns a message for the topic, changed as told.
func (t *T) msg(body string, change ...func(*driver.Message)) *driver.Message {
	m := &driver.Message{ID: t.newID(), Topic: topic, Body: []byte(body)}
	for _, f := range change {
		f(m)
	}
	return m
}

// msgs returns one message for each body, all changed as told.
func (t *T) msgs(bodies []string, change ...func(*driver.Message)) []*driver.Message {
	ms := make([]*driver.Message, len(bodies))
	for i, b := range bodies {
		ms[i] = t.msg(b, change...)
	}
	return ms
}

// What a message can be.

func key(k string) func(*driver.Message)           { return func(m *driver.Message) { m.Key = k } }
func to(topic string) func(*driver.Message)        { return func(m *driver.Message) { m.Topic = topic } }
func delay(d time.Duration) func(*driver.Message)  { return func(m *driver.Message) { m.Delay = d } }
func ttl(d time.Duration) func(*driver.Message)    { return func(m *driver.Message) { m.TTL = d } }
func prio(p driver.Priority) func(*driver.Message) { return func(m *driver.Message) { m.Priority = p } }
func ownID(id string) func(*driver.Message) {
	return func(m *driver.Message) { m.ID, m.OwnID = id, true }
}
func dedup(id string, window time.Duration) func(*driver.Message) {
	return func(m *driver.Message) { m.DedupID, m.DedupWindow = id, window }
}

// numbered returns "prefix1" to "prefixN".
func numbered(prefix string, n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = fmt.Sprintf("%s%d", prefix, i+1)
	}
	return s
}

// publish stores messages, and demands that all are taken.
func (t *T) publish(ms ...*driver.Message) []driver.Receipt {
	t.Helper()
	rs, err := t.Publish(t.ctx(), ms, driver.PublishOptions{})
	t.ok(err, "Publish")
	if len(rs) != len(ms) {
		t.Fatalf("Publish of %d messages returned %d receipts", len(ms), len(rs))
	}
	if len(ms) > 1 && ms[0].Key != "" {
		// A log may bring what one call published in two parts to a consumer that is there already. Figures wait until it
		// has all of it, so that one claim gets the whole run.
		_, err = t.Stats(t.ctx(), ms[0].Topic)
		t.ok(err, "Stats of what was published")
	}
	return rs
}

// put publishes one message for each body.
func (t *T) put(bodies ...string) []driver.Receipt {
	t.Helper()
	return t.publish(t.msgs(bodies)...)
}

// putKeyed publishes one message with this key for each body.
func (t *T) putKeyed(k string, bodies ...string) []driver.Receipt {
	t.Helper()
	return t.publish(t.msgs(bodies, key(k))...)
}

// group creates a group, and its topic if need be.
func (t *T) group(name string) {
	t.Helper()
	t.oneLane(topic)
	t.ok(t.EnsureGroup(t.ctx(), topic, name, driver.GroupOptions{}), "EnsureGroup")
}

// oneLane creates the topic with one partition or shard, where the backend has them: only there unkeyed messages have
// one order, and bounds and atomic steps cover the topic.
func (t *T) oneLane(topic string) { t.Helper(); t.configure(topic, driver.TopicConfig{}) }

// configure creates a topic like oneLane, with this configuration.
func (t *T) configure(topic string, c driver.TopicConfig) {
	t.Helper()
	t.ok(t.EnsureTopic(t.ctx(), topic, t.onePartition(c)), "EnsureTopic")
}

func (t *T) onePartition(c driver.TopicConfig) driver.TopicConfig {
	if t.Caps.Parallel != driver.ParallelUnbounded || t.Caps.Bound != driver.BoundPerTopic {
		c.Partitions = 1
	}
	return c
}

// fetched lets a driver catch up that claims from what it has fetched so far: where counts are estimates and priorities
// reach as far as the fetch window, a message just published does not compete yet. Asking for Stats waits for it.
func (t *T) fetched() {
	t.Helper()
	if t.Caps.Counts == driver.CountsEstimated && t.Caps.KeyedPriority == driver.PriorityInFetchWindow {
		t.stats(topic)
	}
}

// stats returns the counts of the topic.
func (t *T) stats(topic string) driver.TopicStats {
	t.Helper()
	s, err := t.Stats(t.ctx(), topic)
	t.ok(err, "Stats")
	return s
}

// groupStats returns the counts of one group of the topic.
func (t *T) groupStats(group string) driver.GroupStats {
	t.Helper()
	s := t.stats(topic)
	i := slices.IndexFunc(s.Groups, func(g driver.GroupStats) bool { return g.Group == group })
	if i < 0 {
		t.Fatalf("Stats of %q does not show group %q: %+v", topic, group, s.Groups)
	}
	return s.Groups[i]
}

// counts demands how many messages of the default group are in each state.
func (t *T) counts(ready, inflight, waiting, dead int64) {
	t.Helper()
	t.countsOf(driver.DefaultGroup, ready, inflight, waiting, dead)
}

func (t *T) countsOf(group string, ready, inflight, waiting, dead int64) {
	t.Helper()
	if t.Caps.Counts != driver.CountsExact {
		return
	}
	g := t.groupStats(group)
	got, want := [4]int64{g.Ready, g.Inflight, g.Waiting, g.Dead}, [4]int64{ready, inflight, waiting, dead}
	if got != want {
		t.Fatalf("group %q has [ready inflight waiting dead] %v, want %v", group, got, want)
	}
}

// balanced demands the equations that hold always, in every topic.
func (t *T) balanced() {
	t.Helper()
	if t.Caps.Counts != driver.CountsExact {
		return
	}
	topics, err := t.Topics(t.ctx())
	if errors.Is(err, driver.ErrClosed) {
		return
	}
	t.ok(err, "Topics")
	for _, info := range topics {
		for _, complaint := range unbalanced(t.stats(info.Topic)) {
			t.Error(complaint)
		}
		t.sound(info.Topic)
	}
}

// sound demands that an audit finds nothing wrong.
func (t *T) sound(topic string) driver.AuditReport {
	t.Helper()
	report, err := t.Audit(t.ctx(), topic, false)
	t.ok(err, "Audit")
	for _, p := range report.Problems {
		t.Errorf("Audit of %q found %+v", topic, p)
	}
	return report
}

// unbalanced says which of the equations in the comments of TopicStats and GroupStats do not hold.
func unbalanced(s driver.TopicStats) []string {
	var complaints []string
	in, out := s.Published, s.Fanned+uint64(s.Delayed)+uint64(s.Held)+s.Expired+s.Cancelled
	if in != out {
		complaints = append(complaints, fmt.Sprintf("topic %q: Published %d is not Fanned + Delayed + Held + Expired + "+
			"Cancelled = %d: %+v", s.Topic, in, out, s))
	}
	for _, g := range s.Groups {
		out := g.Acked + g.Dropped + g.Expired + g.Cancelled + uint64(g.Ready) + uint64(g.Inflight) + uint64(g.Waiting) +
			uint64(g.Dead)
		if g.Received != out {
			complaints = append(complaints, fmt.Sprintf("group %q: Received %d is not the sum of its states %d: %+v", g.Group,
				g.Received, out, g))
		}
		if g.Ready < 0 || g.Inflight < 0 || g.Waiting < 0 || g.Dead < 0 {
			complaints = append(complaints, fmt.Sprintf("group %q: a count is negative: %+v", g.Group, g))
		}
	}
	return complaints
}
