package drivertest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// deadLetter returns the record of the only dead letter of the default group.
func (t *T) deadLetter() *driver.DeadLetter {
	t.Helper()
	es := t.browse(driver.StateDead)
	if len(es) != 1 || es[0].Dead == nil || es[0].Dead.Message == nil || es[0].Message == nil {
		t.Fatalf("Browse shows %d dead letters %+v, want one with its record", len(es), es)
	}
	t.whole(es[0].Message, es[0].Dead.Message)
	return es[0].Dead
}

// deadLetterIsComplete compares every field of the record.
func deadLetterIsComplete(t *T) {
	t.oneLane(topic)
	s := t.subscribe(driver.SubscribeOptions{Instance: "host-7"})
	m := t.msg("poison", key("customer 7"), prio(driver.High))
	m.Headers, m.ContentType = map[string]string{"trace": "1"}, "text/plain"
	t.publish(m)
	s.retry(s.one(), 0)
	d := s.one()
	before := time.Now()
	s.settle(driver.Settlement{Delivery: d, Outcome: driver.Dead, Failure: &driver.Failure{Duration: time.Second,
		Reason: driver.ReasonPanic, Error: "dial 10.0.0.1:80 failed after 3 tries", Stack: "goroutine 7"}})
	dl := t.deadLetter()
	t.whole(dl.Message, m)
	t.equal(len(dl.History), 2, "length of the history")
	for _, at := range []time.Time{dl.DiedAt, dl.History[0].At, dl.History[1].At} {
		if off := at.Sub(before).Abs(); off > time.Minute {
			t.Errorf("a time in the record is %v, %v off", at, off)
		}
	}
	dl.DiedAt, dl.History[0].At, dl.History[1].At = time.Time{}, time.Time{}, time.Time{}
	t.equal(*dl, driver.DeadLetter{
		Message: dl.Message, Reason: driver.ReasonPanic, Error: "dial 10.0.0.1:80 failed after 3 tries",
		Fingerprint: "dial # failed after # tries", Stack: "goroutine 7",
		History: []driver.Failure{
			{Instance: "host-7", Attempt: 1, Duration: 5 * time.Millisecond, Reason: driver.ReasonDownstream,
				Error: "try again"},
			{Instance: "host-7", Attempt: 2, Duration: time.Second, Reason: driver.ReasonPanic,
				Error: "dial 10.0.0.1:80 failed after 3 tries", Stack: "goroutine 7"}},
		Origin:   driver.Origin{Topic: topic, Group: driver.DefaultGroup, Ref: d.Ref, Instance: "host-7"},
		Attempts: 2, Deliveries: 1, Recoverable: true, Action: driver.ActionDelayedRetry,
	}, "dead letter")
}

func deadLetterCountsLostLeases(t *T) {
	s := t.shortLease()
	t.put("a")
	d := s.lose(s.one())[0]
	s.settle(driver.Settlement{Delivery: d, Outcome: driver.Dead,
		Failure: &driver.Failure{Reason: driver.ReasonMaxDeliveries, Error: "killer"}})
	dl := t.deadLetter()
	t.equal(dl.Deliveries, 2, "deliveries")
	t.equal(dl.Attempts, 1, "attempts")
	t.equal(dl.Action, driver.ActionEscalate, "advice")
}

func deadLetterHistoryIsBounded(t *T) {
	s := t.consumer()
	t.put("a")
	for range driver.HistoryLimit + 2 {
		s.retry(s.one(), 0)
	}
	s.bury(s.one())
	dl := t.deadLetter()
	t.equal(len(dl.History), driver.HistoryLimit, "length of the history")
	t.equal(dl.Attempts, driver.HistoryLimit+3, "attempts")
	t.equal(dl.History[len(dl.History)-1].Error, "hopeless", "last error")
}

// deadLetterTextsAreBounded: whatever a handler returns, a record stays small.
func deadLetterTextsAreBounded(t *T) {
	s := t.consumer()
	t.put("a")
	long := strings.Repeat("x", 2*driver.StackLimit)
	s.settle(driver.Settlement{Delivery: s.one(), Outcome: driver.Dead,
		Failure: &driver.Failure{Reason: driver.Reason(long), Error: long, Stack: long}})
	dl := t.deadLetter()
	last := dl.History[len(dl.History)-1]
	t.equal([]int{len(dl.Reason), len(dl.Error), len(dl.Stack), len(last.Reason), len(last.Error), len(last.Stack)},
		[]int{driver.ErrorLimit, driver.ErrorLimit, driver.StackLimit, driver.ErrorLimit, driver.ErrorLimit,
			driver.StackLimit}, "bytes of reason, error and stack")
}

func deadInOneGroupOnly(t *T) {
	t.group("audit")
	t.group("billing")
	t.put("a")
	a := t.subscribe(driver.SubscribeOptions{Group: "audit"})
	a.bury(a.one())
	t.countsOf("audit", 0, 0, 0, 1)
	t.countsOf("billing", 1, 0, 0, 0)
	b := t.subscribe(driver.SubscribeOptions{Group: "billing"})
	b.ack(b.expect("a")...)
	t.countsOf("audit", 0, 0, 0, 1)
	t.equal(len(t.browseGroup("billing", driver.StateDead)), 0, "dead letters of the other group")
	if st := t.stats(topic); t.Caps.Counts == driver.CountsExact && st.Messages != 0 {
		t.Errorf("Messages is %d, although only a dead letter is left", st.Messages)
	}
}

// deadLettersStay: nothing but Move and Delete takes a dead letter away.
func deadLettersStay(t *T) {
	s := t.consumer()
	t.publish(t.msg("a", ttl(3*unit))) // long enough to be claimed
	s.bury(s.one())
	s.idleFor(4 * unit)
	if t.Virtual {
		t.pass(25 * time.Hour) // a store that runs in virtual time has much to do in a month
	}
	s.leave()
	_, err := t.Purge(t.ctx(), topic, "")
	t.ok(err, "Purge")
	t.equal(len(t.browse(driver.StateDead)), 1, "dead letters")
	t.counts(0, 0, 0, 1)
}

func replayStartsOver(t *T) {
	s := t.consumer()
	t.put("a")
	s.retry(s.one(), 0)
	d := s.one()
	s.bury(d)
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, Ref: d.Ref, ID: d.ID}})
	t.counts(1, 0, 0, 0)
	again := s.expect("a")[0]
	if again.Attempt != 1 || again.Cause != driver.CauseReplay || again.ID != d.ID {
		t.Fatalf("replayed as %s, want attempt 1, cause replay, id %s", describe([]*driver.Delivery{again}), d.ID)
	}
	t.equal(len(t.browse(driver.StateDead)), 0, "dead letters after the replay")
	s.bury(again)
	t.equal(t.deadLetter().Rounds, 1, "rounds after the second death")
}

func replayLater(t *T) {
	s := t.consumer()
	t.put("a")
	d := s.one()
	s.bury(d)
	start := time.Now()
	t.before(start.Add(unit), func() {
		t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID}, After: unit})
		s.idle()
	})
	s.expect("a")
	t.onTime(start.Add(unit), "the replay")
}

// replayKeepsTheHistory: what has failed before is known while the message waits, and when it dies again.
func replayKeepsTheHistory(t *T) {
	s := t.consumer()
	t.put("a")
	s.retry(s.one(), 0)
	d := s.one()
	s.bury(d)
	at := driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: d.ID}
	history := t.deadLetter().History
	t.equal(len(history), 2, "length of the history")
	t.move(driver.Move{Target: at, After: time.Hour})
	t.equal(t.get(at).History, history, "history of what waits after its replay")
	t.move(driver.Move{Target: at})
	s.bury(s.one())
	dl := t.deadLetter()
	t.equal(len(dl.History), 3, "length of the history after the second death")
	t.equal(dl.History[:2], history, "history of before the replay")
	t.equal(dl.Attempts, 1, "attempts since the replay")
}

func replayEdited(t *T) {
	s := t.consumer()
	m := t.msg("broken", key("k"))
	t.publish(m)
	s.bury(s.one())
	edit := &driver.Message{ID: "ignored", Topic: topic, Key: "j", Body: []byte("mended"), ContentType: "text/plain",
		Headers: map[string]string{"by": "operator"}, Priority: driver.High, MaxAttempts: 2}
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: m.ID}, Edit: edit})
	d := s.one()
	t.equal([]any{d.ID, d.Key, string(d.Body), d.ContentType, d.Headers, d.Priority, d.MaxAttempts},
		[]any{m.ID, "j", "mended", "text/plain", edit.Headers, driver.High, 2}, "edited message")
}

func replayBelongsToOneGroup(t *T) {
	t.group("audit")
	t.group("billing")
	t.put("a")
	a, b := t.subscribe(driver.SubscribeOptions{Group: "audit"}), t.subscribe(driver.SubscribeOptions{Group: "billing"})
	d := a.one()
	a.bury(d)
	b.ack(b.one())
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: "audit", ID: d.ID}})
	a.ack(a.expect("a")...)
	b.idle()
}

func deadLetterDeleted(t *T) {
	s := t.consumer()
	t.put("a", "b")
	ds := s.take(2)
	s.bury(ds[0])
	s.bury(ds[1])
	at := driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: ds[0].ID}
	t.ok(t.Delete(t.ctx(), []driver.Target{at})[0], "Delete")
	t.counts(0, 0, 0, 1)
	if g := t.groupStats(driver.DefaultGroup); t.Caps.Counts == driver.CountsExact && g.Cancelled != 1 {
		t.Errorf("Cancelled is %d after a dead letter was deleted", g.Cancelled)
	}
	for what, err := range map[string]error{"Delete": t.Delete(t.ctx(), []driver.Target{at})[0],
		"Move": t.Move(t.ctx(), []driver.Move{{Target: at}})[0]} {
		if !errors.Is(err, driver.ErrNotFound) {
			t.Errorf("%s of a deleted dead letter: got error %v, want ErrNotFound", what, err)
		}
	}
}

// deadLettersAreConserved: many die, some are replayed, some deleted; the rest is still there, oldest first.
func deadLettersAreConserved(t *T) {
	s := t.consumer()
	t.put(numbered("a", 30)...)
	var ids []string
	for _, d := range s.take(30) {
		s.bury(d)
		ids = append(ids, d.ID)
	}
	var want []string
	for i, id := range ids {
		at := driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: id}
		switch i % 3 {
		case 0:
			t.move(driver.Move{Target: at})
		case 1:
			t.ok(t.Delete(t.ctx(), []driver.Target{at})[0], "Delete")
		default:
			want = append(want, fmt.Sprintf("a%d", i+1))
		}
	}
	s.ack(s.take(10)...)
	s.idle()
	var got []string
	for _, e := range t.browse(driver.StateDead) {
		got = append(got, string(e.Body))
	}
	t.equal(got, want, "dead letters left")
}

// deadLettersAreOldestFirst: they are listed in the order in which they died, whatever partition or shard they came
// from.
func deadLettersAreOldestFirst(t *T) {
	s := t.subscribe(driver.SubscribeOptions{})
	const n = 24
	for i := range n {
		t.putKeyed(fmt.Sprint("k", i), fmt.Sprint("a", i))
	}
	ds := s.take(n)
	var want []string
	for i := range n {
		d := ds[i*7%n] // neither the order of publishing nor that of delivery
		s.bury(d)
		want = append(want, string(d.Body))
		t.pass(2 * time.Millisecond) // backends tell times in milliseconds
	}
	for _, limit := range []int{1, 5, n} {
		es := t.pages(driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateDead, Limit: limit})
		t.equal(entryBodies(es), want, fmt.Sprintf("dead letters in pages of %d", limit))
	}
	again := want[0]
	t.move(driver.Move{Target: driver.Target{Topic: topic, Group: driver.DefaultGroup, ID: ds[0].ID}})
	s.bury(s.expect(again)[0])
	t.equal(entryBodies(t.browse(driver.StateDead)), append(want[1:], again), "dead letters after one died again")
}
