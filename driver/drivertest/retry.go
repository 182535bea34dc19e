package drivertest

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func retryNow(t *T) {
	s := t.consumer()
	t.put("a")
	start := time.Now()
	s.retry(s.one(), 0)
	t.counted(s.one(), 2, 1, driver.CauseRetry)
	t.onTime(start, "a retry without a wait")
}

func retryNeverEarly(t *T) {
	s := t.consumer()
	t.put("a")
	d := s.one()
	for attempt := 2; attempt <= 4; attempt++ {
		wait := unit / time.Duration(attempt)
		start := time.Now()
		s.retry(d, wait)
		d = s.one()
		t.onTime(start.Add(wait), "a retry")
		t.counted(d, attempt, 1, driver.CauseRetry)
	}
}

func retryWaits(t *T) {
	s := t.consumer()
	t.put("a", "b")
	before := time.Now()
	ds := s.take(2)
	s.retry(ds[0], time.Hour)
	t.counts(0, 1, 1, 0)
	e := t.get(driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: ds[0].ID})
	t.equal(e.State, driver.StateWaiting, "state")
	if off := e.DueAt.Sub(before.Add(time.Hour)).Abs(); off > time.Minute {
		t.Errorf("DueAt is %v, %v off", e.DueAt, off)
	}
	s.ack(ds[1])
	s.idle()
}

// attemptsWithoutEnd: a message says that it may be tried for ever, however often it was.
func attemptsWithoutEnd(t *T) {
	s := t.consumer()
	m := t.msg("a")
	m.MaxAttempts = driver.Unlimited
	t.publish(m)
	for attempt := 1; attempt <= 3; attempt++ {
		d := s.one()
		t.equal([]int{d.Attempt, d.MaxAttempts}, []int{attempt, driver.Unlimited}, "attempt and the most there may be")
		s.retry(d, 0)
	}
}

func historyGrows(t *T) {
	s := t.subscribe(driver.SubscribeOptions{Instance: "host-7"})
	t.put("a")
	for i := 1; i <= 3; i++ {
		f := &driver.Failure{Duration: time.Duration(i) * time.Millisecond, Reason: driver.ReasonPanic,
			Error: fmt.Sprintf("error %d", i), Stack: fmt.Sprintf("stack %d", i)}
		s.settle(driver.Settlement{Delivery: s.one(), Outcome: driver.Retry, Failure: f})
	}
	d := s.one()
	e := t.get(driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID})
	t.equal(e.Attempt, 4, "attempt")
	t.equal(len(e.History), 3, "length of the history")
	for i, f := range e.History {
		if f.At.IsZero() || time.Since(f.At).Abs() > time.Minute {
			t.Errorf("failure %d says it was at %v", i+1, f.At)
		}
		f.At = time.Time{}
		t.equal(f, driver.Failure{Instance: "host-7", Attempt: i + 1, Duration: time.Duration(i+1) * time.Millisecond,
			Reason: driver.ReasonPanic, Error: fmt.Sprintf("error %d", i+1), Stack: fmt.Sprintf("stack %d", i+1)}, "failure")
	}
}

func historyIsBounded(t *T) {
	s := t.consumer()
	t.put("a")
	const fails = driver.HistoryLimit + 3
	for i := 1; i <= fails; i++ {
		long := fmt.Sprint(i, " ") + string(make([]byte, 2*driver.ErrorLimit))
		s.settle(driver.Settlement{Delivery: s.one(), Outcome: driver.Retry, Failure: failure(long)})
	}
	d := s.one()
	t.equal(d.Attempt, fails+1, "attempt")
	h := t.get(driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID}).History
	t.equal(len(h), driver.HistoryLimit, "length of the history")
	t.equal(h[0].Attempt, fails-driver.HistoryLimit+1, "oldest attempt in the history")
	t.equal(h[len(h)-1].Attempt, fails, "newest attempt in the history")
	if len(h[0].Error) > driver.ErrorLimit {
		t.Errorf("an error of %d bytes was kept, more than %d", len(h[0].Error), driver.ErrorLimit)
	}
}

// largestFails: the largest message that may be published, with the longest texts of a handler, is retried, buried and
// replayed as any other.
func largestFails(t *T) {
	s := t.consumer()
	m := t.msg("a")
	m.Body, m.Headers = make([]byte, t.Caps.MaxBody), map[string]string{}
	noise := rand.NewChaCha8([32]byte{}) // which no compression makes smaller
	_, _ = noise.Read(m.Body)
	text := func(n int) string {
		b := make([]byte, n/2)
		_, _ = noise.Read(b)
		return hex.EncodeToString(b)
	}
	const header = 1 << 10
	for n := range driver.MaxHeaders - 1 {
		m.Headers[fmt.Sprint("h", n)] = text(header - 8)
	}
	t.publish(m)
	f := &driver.Failure{Reason: driver.Reason(text(driver.ErrorLimit)), Error: text(driver.ErrorLimit),
		Stack: text(driver.StackLimit)}
	for range driver.HistoryLimit + 1 {
		s.settle(driver.Settlement{Delivery: s.one(), Outcome: driver.Retry, Failure: f})
	}
	d := s.one()
	s.settle(driver.Settlement{Delivery: d, Outcome: driver.Dead, Failure: f})
	e := t.get(driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID})
	t.equal(len(e.Dead.History), driver.HistoryLimit, "length of the history")
	t.equal(e.Dead.Stack, f.Stack, "stack")
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID}})
	again := s.one()
	t.equal(bytes.Equal(again.Body, m.Body), true, "body is whole")
	t.equal(len(again.Headers), len(m.Headers), "headers")
}

func dropIsCounted(t *T) {
	s := t.consumer()
	t.put("a")
	s.settle(driver.Settlement{Delivery: s.one(), Outcome: driver.Drop})
	s.idle()
	t.counts(0, 0, 0, 0)
	if g := t.groupStats(driver.DefaultGroup); t.Caps.Counts == driver.CountsExact && (g.Dropped != 1 || g.Acked != 0) {
		t.Errorf("Stats %+v, want one dropped", g)
	}
}

// failuresAreCounted: what failed stays counted when the dead letter is replayed, and when nothing is left of it.
func failuresAreCounted(t *T) {
	s := t.consumer()
	counted := func(retried, died uint64) {
		t.Helper()
		t.until(fmt.Sprintf("%d are retried and %d died", retried, died), func() bool {
			g := t.groupStats(driver.DefaultGroup)
			return g.Retried == retried && g.Died == died
		})
	}
	t.put("a")
	s.retry(s.one(), 0)
	s.retry(s.one(), unit)
	d := s.one()
	s.bury(d)
	counted(2, 1)
	letter := driver.Target{Topic: topic, Group: driver.DefaultGroup, Ref: d.Ref, ID: d.ID}
	t.move(driver.Move{Target: letter})
	s.release(s.one())
	s.bury(s.one())
	counted(2, 2)
	t.ok(t.Delete(t.ctx(), []driver.Target{letter})[0], "Delete")
	counted(2, 2)
}
