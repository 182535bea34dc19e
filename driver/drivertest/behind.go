package drivertest

import (
	"time"

	"github.com/ferrymq/ferry/driver"
)

// promptly is how long what is ready may take to a Receive: less than drivers wait that look again because news may
// have been lost.
const promptly = unit / 2

// prompt complains if something that was due came later than at once.
func (t *T) prompt(due time.Time, what string) {
	t.Helper()
	if took := time.Since(due); took > promptly {
		t.late(due, took-promptly, what+" took "+took.String())
	}
}

// busyKeyBlocksNoOther: however much of a key is unread behind a message of it that is held, another key does not wait.
func busyKeyBlocksNoOther(t *T) {
	s := t.consumer()
	t.putKeyed("busy", numbered("a", 61)...)
	t.putKeyed("free", "b")
	head := s.expect("a1")[0]
	start := time.Now()
	free := s.expect("b")
	t.prompt(start, "a message behind 60 followers of a key that is held")
	s.idle()
	start = time.Now()
	s.ack(head)
	head = s.expect("a2")[0]
	t.prompt(start, "the first of 60 followers")
	s.ack(head, free[0])
	t.equal(bodies(s.gather(59)), numbered("a", 61)[2:], "the other followers")
}

// busyKeyBlocksNoPriority: nor where priorities are compared, with more of a key behind its head than a driver reads
// ahead for that.
func busyKeyBlocksNoPriority(t *T) {
	s := t.consumer()
	t.putKeyed("busy", numbered("a", 401)...)
	for range 5 {
		t.putKeyed("busy", numbered("b", 400)...)
	}
	s.expect("a1")
	t.publish(t.msg("c", key("free"), prio(driver.Low)))
	start := time.Now()
	s.expect("c")
	t.prompt(start, "a message behind 2,400 followers of a key that is held")
	s.idle()
}

// followerWakesAReceive: who waits is given the follower once its head is settled.
func followerWakesAReceive(t *T) {
	s := t.consumer()
	t.putKeyed("k", numbered("a", 4)...)
	ds := s.expect("a1")
	for _, next := range numbered("a", 4)[1:] {
		type answer struct {
			ds  []*driver.Delivery
			err error
		}
		waiting, ctx := make(chan answer, 1), t.ctx()
		go func() {
			got, err := s.Receive(ctx, 1)
			waiting <- answer{got, err}
		}()
		t.pass(quiet)
		start := time.Now()
		s.ack(ds...)
		got := <-waiting
		t.ok(got.err, "Receive that waited for a follower")
		t.equal(bodies(got.ds), []string{next}, "deliveries")
		t.prompt(start, "the follower "+next)
		ds = got.ds
	}
}
