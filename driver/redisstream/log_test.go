package redisstream_test

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// What Partitions says of a group is what XINFO and XPENDING say.
func TestPartitionsAgreeWithXInfo(t *testing.T) {
	w := newWorld(t)
	s := w.subscribe("host-1", time.Minute)
	for i := range 40 {
		w.publish(10*i, 10*i+10, fmt.Sprint("key", i))
	}
	ds := w.take(s, 30)
	w.settle(s, driver.Ack, ds[:10]...)
	w.settle(s, driver.Retry, ds[10])
	parts, err := w.d.Partitions(w.ctx(), "jobs")
	w.ok(err)
	var lag, pending int64
	for i, p := range parts {
		groups, err := w.c.XInfoGroups(w.ctx(), w.stream(i)).Result()
		w.ok(err)
		g := p.Groups[0]
		if len(p.Groups) != 1 || g.Lag != groups[0].Lag || g.Pending != groups[0].Pending || g.Owner != "host-1" {
			t.Errorf("partition %d: %+v, XINFO says %+v", i, p.Groups, groups)
		}
		if n := w.c.XLen(w.ctx(), w.stream(i)).Val(); n != p.Entries || n > 0 && (p.First.IsZero() || p.Memory < n) {
			t.Errorf("partition %d: %+v, XLEN is %d", i, p, n)
		}
		for _, c := range g.Consumers {
			if c.Instance != "host-1" || c.Pending != g.Pending {
				t.Errorf("partition %d: consumers %+v", i, g.Consumers)
			}
		}
		lag, pending = lag+g.Lag, pending+g.Pending
	}
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	if g := st.Groups[0]; lag+pending != g.Ready+g.Inflight+g.Waiting || lag+pending != 390 {
		t.Errorf("lag %d and pending %d; Stats says %+v", lag, pending, g)
	}
}

func TestPending(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("host-1", time.Minute)
	w.publish(0, 5, "")
	ds := w.take(s, 3)
	w.ok(s.Settle(w.ctx(), []driver.Settlement{{Delivery: ds[0], Outcome: driver.Retry}})[0])
	again := w.take(s, 1)
	for again[0].ID != "m0000" { // it joined the tail
		w.settle(s, driver.Ack, again...)
		again = w.take(s, 1)
	}
	page, err := w.d.Pending(w.ctx(), driver.PendingQuery{Topic: "jobs", Group: "default", Limit: 2})
	w.ok(err)
	rest, err := w.d.Pending(w.ctx(), driver.PendingQuery{Topic: "jobs", Group: "default", Cursor: page.Next})
	w.ok(err)
	all := slices.Concat(page.Entries, rest.Entries)
	if len(page.Entries) != 2 || len(all) != 3 || rest.Next != "" {
		t.Fatalf("pages %+v and %+v", page, rest)
	}
	if e := all[0]; e.ID != "m0000" || e.Deliveries != 2 || e.Instance != "host-1" || e.State != driver.StateInflight ||
		e.Ref != ds[0].Ref {
		t.Errorf("the first pending one is %+v", e)
	}
	if other, err := w.d.Pending(w.ctx(),
		driver.PendingQuery{Topic: "jobs", Group: "default", Instance: "host-2"}); err != nil || len(other.Entries) > 0 {
		t.Errorf("of another instance: %+v, %v", other, err)
	}
	if _, err := w.d.Pending(w.ctx(),
		driver.PendingQuery{Topic: "jobs", Group: "none"}); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("of an unknown group: %v", err)
	}
	if _, err := w.d.Pending(w.ctx(),
		driver.PendingQuery{Topic: "jobs", Group: "default", Cursor: "0:x"}); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a malformed cursor: %v", err)
	}
}

// A range is delivered again to the group it is replayed for, and to no other.
func TestReplayOfARange(t *testing.T) {
	w := newWorld(t)
	w.ok(w.d.EnsureTopic(w.ctx(), "jobs", driver.TopicConfig{Partitions: 1, Keep: time.Hour}))
	w.ok(w.d.EnsureGroup(w.ctx(), "jobs", "other", driver.GroupOptions{}))
	s := w.subscribe("host-1", time.Minute)
	w.publish(0, 6, "")
	ds := w.take(s, 6)
	w.settle(s, driver.Ack, ds...)
	o := driver.ReplayOptions{From: driver.Position{From: driver.FromRef, Ref: ds[1].Ref},
		To: driver.Position{From: driver.FromRef, Ref: ds[4].Ref}, DryRun: true}
	for range 2 {
		report, err := w.d.Replay(w.ctx(), "jobs", "default", o)
		w.ok(err)
		if report.Replayed != 3 || report.Skipped != 0 {
			t.Errorf("dry run %v: %+v", o.DryRun, report)
		}
		o.DryRun = false
	}
	var ids []string
	for _, d := range w.take(s, 3) {
		ids = append(ids, d.ID)
		if d.Cause != driver.CauseReplay {
			t.Errorf("%s was delivered because of %v", d.ID, d.Cause)
		}
	}
	if want := []string{"m0001", "m0002", "m0003"}; !slices.Equal(ids, want) {
		t.Errorf("replayed %v, want %v", ids, want)
	}
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	if st.Groups[1].Ready != 6 || st.Groups[1].Received != 6 {
		t.Errorf("the other group: %+v", st.Groups[1])
	}
	w.sound()
}

func TestRange(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	w.publish(0, 5, "k")
	w.ok(w.d.StoreRaw(w.ctx(), "jobs", []byte("rubbish")))
	all, err := w.d.Range(w.ctx(), driver.RangeQuery{Topic: "jobs"})
	w.ok(err)
	if es := all.Entries; len(es) != 6 || es[0].ID != "m0000" || es[4].Key != "k" || string(es[2].Body) != "2" ||
		string(es[5].Raw) != "rubbish" || es[5].State != driver.StateInvalid || !all.Next.IsZero() {
		t.Fatalf("%+v", all)
	}
	at := func(i int) driver.Position { return driver.Position{From: driver.FromRef, Ref: all.Entries[i].Ref} }
	q := driver.RangeQuery{Topic: "jobs", From: at(1), To: at(4), Limit: 2}
	first, err := w.d.Range(w.ctx(), q)
	w.ok(err)
	q.From.Ref = first.Next
	rest, err := w.d.Range(w.ctx(), q)
	w.ok(err)
	if len(first.Entries) != 2 || first.Entries[0].ID != "m0001" || len(rest.Entries) != 1 ||
		rest.Entries[0].ID != "m0003" || !rest.Next.IsZero() {
		t.Errorf("%+v, then %+v", first, rest)
	}
	for _, q := range []driver.RangeQuery{
		{Topic: "jobs", From: driver.Position{From: driver.FromTime, Time: time.Now().Add(time.Hour)}},
		{Topic: "jobs", To: driver.Position{From: driver.FromBegin}}} {
		if none, err := w.d.Range(w.ctx(), q); err != nil || len(none.Entries) > 0 {
			t.Errorf("%+v: %+v, %v", q, none, err)
		}
	}
	for _, n := range []int32{-1, 1} {
		if _, err := w.d.Range(w.ctx(), driver.RangeQuery{Topic: "jobs", Partition: n}); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("partition %d: %v", n, err)
		}
	}
}

// The number of partitions changes only when there is nothing in the topic; groups stay.
func TestChangeOfPartitions(t *testing.T) {
	w := newWorld(t)
	w.ok(w.d.EnsureGroup(w.ctx(), "jobs", "relaxed", driver.GroupOptions{Order: driver.Relaxed}))
	w.publish(0, 1, "k")
	err := w.d.AlterTopic(w.ctx(), "jobs", driver.TopicConfig{Partitions: 3})
	var e *driver.Error
	if !errors.Is(err, driver.ErrUnsupported) || !errors.As(err, &e) || !strings.Contains(e.Hint, "drain") {
		t.Fatalf("with a message in it: %v", err)
	}
	w.publish(1, 2, "k") // nothing is closed
	_, err = w.d.Purge(w.ctx(), "jobs", "")
	w.ok(err)
	for _, n := range []int{3, 5, 1} {
		w.ok(w.d.AlterTopic(w.ctx(), "jobs", driver.TopicConfig{Partitions: n}))
		w.publish(10*n, 10*n+10, fmt.Sprint(n))
		st, err := w.d.Stats(w.ctx(), "jobs")
		w.ok(err)
		if len(st.Groups) != 1 || st.Groups[0].Order != driver.Relaxed || st.Groups[0].Ready != 10 {
			t.Errorf("with %d partitions: %+v", n, st.Groups)
		}
		parts, err := w.d.Partitions(w.ctx(), "jobs")
		w.ok(err)
		if len(parts) != n {
			t.Errorf("%d partitions, want %d", len(parts), n)
		}
		_, err = w.d.Purge(w.ctx(), "jobs", "")
		w.ok(err)
	}
	if n := w.c.Exists(w.ctx(), w.stream(4)).Val(); n != 0 {
		t.Error("a partition that is no more has left keys")
	}
	w.sound()
}

// A message that redis-cli adds with the fields that docs/redisstream.md names is delivered; one without them is kept
// whole among the parse errors.
func TestRedisCLI(t *testing.T) {
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal("redis-cli comes with the server, and is not there")
	}
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("host-1", time.Minute)
	run := func(args ...string) string {
		o, err := goredis.ParseURL(redistest.Shared(t).URL())
		w.ok(err)
		host, port, _ := strings.Cut(o.Addr, ":")
		out, err := exec.CommandContext(w.ctx(), cli, append([]string{"-h", host, "-p", port}, args...)...).CombinedOutput()
		w.ok(err)
		return strings.TrimSpace(string(out))
	}
	run("XADD", w.stream(0), "*", "what", "is this", "and", "that")
	id := run("XADD", w.stream(0), "*", "body", `{"order":7}`, "key", "customer-42", "ct", "application/json",
		"h:trace", "abc", "pri", "1")
	d := w.take(s, 1)[0]
	if d.ID != id || d.Key != "customer-42" || d.ContentType != "application/json" || d.Headers["trace"] != "abc" ||
		d.Priority != driver.High {
		t.Errorf("delivered %+v", d.Message)
	}
	if out := run("XPENDING", w.stream(0), "default", "-", "+", "10"); !strings.Contains(out, id) ||
		!strings.Contains(out, "host-1") {
		t.Errorf("XPENDING: %s", out)
	}
	if out := run("XINFO", "GROUPS", w.stream(0)); !strings.Contains(out, "default") ||
		!strings.Contains(out, "pending\n1") {
		t.Errorf("XINFO GROUPS: %s", out)
	}
	run("XGROUP", "CREATE", w.stream(0), "tool", "0") // a group that is not ours disturbs nobody
	if out := run("XREADGROUP", "GROUP", "tool", "cli", "STREAMS", w.stream(0),
		">"); !strings.Contains(out, "application/json") {
		t.Errorf("XREADGROUP: %s", out)
	}
	if out := run("XRANGE", w.stream(0), "-", "+"); !strings.Contains(out, "customer-42") {
		t.Errorf("XRANGE: %s", out)
	}
	w.settle(s, driver.Ack, d)
	page, err := w.d.Browse(w.ctx(), driver.Query{Topic: "jobs", State: driver.StateInvalid})
	w.ok(err)
	if len(page.Entries) != 1 || !strings.Contains(string(page.Entries[0].Raw), `"what" "is this"`) ||
		!strings.Contains(string(page.Entries[0].Raw), `"and" "that"`) {
		t.Errorf("parse errors: %+v", page.Entries)
	}
	w.sound()
}
