package redisstream_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// kept is a topic of one partition with 10 messages, of which 4 are settled and kept, and its consumer.
func kept(t *testing.T, lease time.Duration) (*world, driver.Subscription) {
	w := newWorld(t)
	w.ok(w.d.EnsureTopic(w.ctx(), "jobs", driver.TopicConfig{Partitions: 1, Keep: time.Hour}))
	s := w.subscribe("host-1", lease)
	w.publish(0, 10, "")
	w.settle(s, driver.Ack, w.take(s, 4)...)
	return w, s
}

func (w *world) retain(r driver.Retention) { w.Helper(); w.ok(w.d.Retain(w.ctx(), "jobs", r)) }

// trims demands what one Trim does, and how many entries it leaves.
func (w *world) trims(want driver.TrimReport, left int64) {
	w.Helper()
	report, err := w.d.Trim(w.ctx(), "jobs")
	w.ok(err)
	if n := w.c.XLen(w.ctx(), w.stream(0)).Val(); report != want || n != left {
		w.Errorf("%+v, %d entries left; want %+v and %d", report, n, want, left)
	}
}

// pass waits until so much time has passed by the server's clock.
func (w *world) pass(d time.Duration) {
	w.Helper()
	begun := w.c.Time(w.ctx()).Val()
	w.until("time passes", func() bool { return w.c.Time(w.ctx()).Val().After(begun.Add(d)) })
}

// Retention removes what is settled and waits for the rest, unless it may drop it. Only without an owner, who applies
// it too, is it certain what one Trim does.
func TestRetention(t *testing.T) {
	w, s := kept(t, time.Minute)
	w.ok(s.Close(w.ctx()))
	w.retain(driver.Retention{Entries: 3})
	w.trims(driver.TrimReport{Removed: 4, Waits: true}, 6)
	s = w.subscribe("host-1", time.Minute)
	held := w.take(s, 1)
	w.retain(driver.Retention{Entries: 3, DropUnsettled: true})
	w.trims(driver.TrimReport{Waits: true}, 6) // behind one in flight
	w.retain(driver.Retention{})
	w.settle(s, driver.Retry, held...)
	w.ok(s.Close(w.ctx()))
	w.retain(driver.Retention{Entries: 3, DropUnsettled: true})
	w.trims(driver.TrimReport{Removed: 3, Dropped: 3}, 3)
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	if st.Groups[0].Dropped != 3 || st.Groups[0].Ready != 3 || st.Messages != 3 {
		t.Errorf("%+v", st)
	}
	w.sound()
}

// Each bound removes what is beyond it: age, number and memory.
func TestRetentionBounds(t *testing.T) {
	for name, r := range map[string]driver.Retention{"age": {Age: time.Millisecond}, "entries": {Entries: 1},
		"bytes": {Bytes: 1}} {
		t.Run(name, func(t *testing.T) {
			w, s := kept(t, time.Minute)
			w.ok(s.Close(w.ctx()))
			w.pass(2 * time.Millisecond)
			w.retain(driver.Retention{Age: time.Hour, Entries: 10, Bytes: 1 << 30})
			w.trims(driver.TrimReport{}, 10)
			w.retain(r)
			got, err := w.d.Retention(w.ctx(), "jobs")
			w.ok(err)
			if got != r {
				t.Errorf("the retention is %+v, want %+v", got, r)
			}
			w.trims(driver.TrimReport{Removed: 4, Waits: true}, 6)
			w.sound()
		})
	}
}

func TestRetentionRefused(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	for _, r := range []driver.Retention{{Age: -1}, {Entries: -1}, {Bytes: -1}} {
		if err := w.d.Retain(w.ctx(), "jobs", r); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	_, err := w.d.Trim(w.ctx(), "none")
	_, err2 := w.d.Retention(w.ctx(), "none")
	for _, err := range []error{err, err2, w.d.Retain(w.ctx(), "none", driver.Retention{})} {
		if !errors.Is(err, driver.ErrNotFound) {
			t.Errorf("of no topic: %v", err)
		}
	}
}

// One who has lost the partition trims nothing, whatever the retention is.
func TestStaleOwnerTrimsNothing(t *testing.T) {
	w, s := kept(t, time.Minute)
	f := w.c.HMGet(w.ctx(), fmt.Sprintf("{%s/jobs/0}:g:default:owner", w.prefix), "member", "epoch").Val()
	w.ok(s.Close(w.ctx()))
	w.retain(driver.Retention{Entries: 3})
	report, err := w.d.TrimAs(w.ctx(), "jobs", "default", f[0].(string), f[1].(string))
	w.ok(err)
	if report != (driver.TrimReport{}) || w.c.XLen(w.ctx(), w.stream(0)).Val() != 10 {
		t.Errorf("a stale owner trimmed: %+v", report)
	}
}

// An owner applies the retention as it renews its ownership.
func TestOwnersTrim(t *testing.T) {
	w, _ := kept(t, time.Second)
	w.retain(driver.Retention{Entries: 3})
	w.until("the settled ones are gone", func() bool { return w.c.XLen(w.ctx(), w.stream(0)).Val() == 6 })
}
