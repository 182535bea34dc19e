package failpoints

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// world is the broker of one victim, and who comes after it.
type world struct {
	t    *testing.T
	ctx  context.Context
	o    order
	d    driver.Driver
	caps driver.Capabilities
}

// found is what became of the message.
type found struct {
	completed  bool // the victim had been answered
	deliveries []*driver.Delivery
	dead       int
	followUps  int
}

func (w *world) ok(err error, what string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

func (w *world) publish(ms ...*driver.Message) {
	w.t.Helper()
	_, err := w.d.Publish(w.ctx, ms, driver.PublishOptions{})
	w.ok(err, "Publish")
}

func (w *world) publishIt() { w.t.Helper(); w.publish(message()) }

// bury kills the message before the victim comes.
func (w *world) bury() {
	w.t.Helper()
	s := w.subscribe(topic, "undertaker")
	ds, err := s.Receive(w.ctx, 1)
	w.ok(err, "Receive")
	w.ok(s.Settle(w.ctx, []driver.Settlement{buried(ds[0])})[0], "Settle")
	w.ok(s.Close(w.ctx), "Close")
}

// subscribe is for those who do not die: their leases are longer than any stall of the machine.
func (w *world) subscribe(topic, instance string) driver.Subscription {
	w.t.Helper()
	s, err := w.d.Subscribe(w.ctx, driver.SubscribeOptions{Topic: topic, Instance: instance, Lease: time.Minute})
	w.ok(err, "Subscribe")
	return s
}

// move and replay are tried until nothing is left to be done: a claim of who died may have to lapse, which takes 30 s
// at most. What is refused after that has a successor that is not settled yet.
func (w *world) move()   { w.t.Helper(); w.persist(moved) }
func (w *world) replay() { w.t.Helper(); w.persist(replayed) }

func (w *world) persist(m driver.Move) {
	w.t.Helper()
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); {
		entries, err := w.d.Get(w.ctx, m.Target)
		waits := func(e driver.Entry) bool { return e.State == driver.StateHeld || e.State == driver.StateDead }
		if errors.Is(err, driver.ErrNotFound) || err == nil && !slices.ContainsFunc(entries, waits) {
			return // it was done
		}
		w.ok(err, "Get")
		err = w.d.Move(w.ctx, []driver.Move{m})[0]
		if err == nil {
			return
		}
		if !errors.Is(err, driver.ErrConflict) && !errors.Is(err, driver.ErrNotFound) &&
			!errors.Is(err, driver.ErrNotApplied) {
			w.ok(err, "Move")
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// kill runs the victim until it dies, and returns how far it came.
func (w *world) kill() (said string) {
	w.t.Helper()
	text, err := json.Marshal(w.o)
	w.ok(err, "order")
	cmd := exec.CommandContext(w.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), orderEnv+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.t.Fatalf("the victim was not killed: %v", err)
	}
	return string(out)
}

// find consumes everything that is left, and counts.
func (w *world) find() (f found) {
	w.t.Helper()
	f.deliveries = w.rest(topic, func(d *driver.Delivery) driver.Settlement {
		if w.o.Operation == "ack" {
			return acknowledged(d)
		}
		return driver.Settlement{Delivery: d, Outcome: driver.Ack}
	})
	page, err := w.d.Browse(w.ctx, driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateDead,
		Limit: 10})
	w.ok(err, "Browse")
	f.dead = len(page.Entries)
	if w.o.Operation == "ack" {
		f.followUps = len(w.rest(followUp, func(d *driver.Delivery) driver.Settlement {
			return driver.Settlement{Delivery: d, Outcome: driver.Ack}
		}))
	}
	report, err := w.d.Audit(w.ctx, topic, false)
	w.ok(err, "Audit")
	for _, p := range report.Problems {
		w.t.Errorf("%s at step %d: the audit found %+v", w.o.Operation, w.o.Point, p)
	}
	return f
}

// rest consumes what is left in a topic, and settles it as it is told. A message of its own says when everything that
// was published before has been there.
func (w *world) rest(topic string, settle func(d *driver.Delivery) driver.Settlement) (ds []*driver.Delivery) {
	w.t.Helper()
	const tail = "tail"
	w.publish(&driver.Message{ID: tail, OwnID: true, Topic: topic})
	s := w.subscribe(topic, "heir")
	for last, seen := time.Now(), false; w.ctx.Err() == nil && !w.over(topic, seen, last); {
		for _, d := range w.receive(s) {
			last = time.Now()
			settlement := driver.Settlement{Delivery: d}
			if d.ID == tail {
				seen = true
			} else {
				ds = append(ds, d)
				settlement = settle(d)
			}
			w.ok(s.Settle(w.ctx, []driver.Settlement{settlement})[0], "Settle")
		}
	}
	w.ok(s.Close(w.ctx), "Close")
	return ds
}

// quiet is how long nothing must come where counts are estimates.
const quiet = 3 * time.Second

func (w *world) receive(s driver.Subscription) []*driver.Delivery {
	w.t.Helper()
	wait := 100 * time.Millisecond
	if w.caps.Counts != driver.CountsExact {
		wait = quiet
	}
	ctx, cancel := context.WithTimeout(w.ctx, wait)
	defer cancel()
	ds, err := s.Receive(ctx, 10)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		w.ok(err, "Receive")
	}
	return ds
}

// over reports whether nothing can come any more. The tail came after everything else that was published.
func (w *world) over(topic string, tail bool, last time.Time) bool {
	w.t.Helper()
	if w.caps.Counts != driver.CountsExact {
		return tail && time.Since(last) > quiet
	}
	st, err := w.d.Stats(w.ctx, topic)
	w.ok(err, "Stats")
	left := st.Delayed
	for _, g := range st.Groups {
		left += g.Ready + g.Inflight + g.Waiting
	}
	return tail && left == 0
}

func (f found) String() string {
	s := fmt.Sprintf("%d deliveries", len(f.deliveries))
	for _, d := range f.deliveries {
		s += fmt.Sprintf(" [attempt %d, delivery %d, %s]", d.Attempt, d.Deliveries, d.Cause)
	}
	return fmt.Sprintf("%s, %d dead letters, %d follow-ups, answered: %v", s, f.dead, f.followUps, f.completed)
}

func (f found) exactly(deliveries, dead int) string {
	if len(f.deliveries) != deliveries || f.dead != dead {
		return fmt.Sprintf("want %d deliveries and %d dead letters", deliveries, dead)
	}
	return ""
}

// copies demands that it is there, and not more often than that.
func (f found) copies(most int) string {
	switch {
	case len(f.deliveries) == 0:
		return "LOST"
	case len(f.deliveries) > most || f.dead > 0:
		return fmt.Sprintf("want at most %d deliveries and no dead letter", most)
	}
	return ""
}

// commitsLate says that what is answered may be forgotten: docs/kafka.md lists what a crash costs there.
func (w *world) commitsLate() bool { return w.caps.LeaseScope == driver.LeasePerPartition }

// wrongMove demands one delivery, or two where the new copy is stored before the end of the old one.
func (w *world) wrongMove(f found) string {
	if w.commitsLate() && w.caps.AtomicEmit != driver.AtomicTransaction {
		f.dead = max(0, f.dead-1) // the letter stays until somebody looks
		return f.copies(2)
	}
	return f.exactly(1, 0)
}

// either demands that it is in one place.
func (f found) either() string {
	if len(f.deliveries)+f.dead != 1 {
		return "want one delivery or one dead letter"
	}
	return ""
}

// counted demands the counters of what came again: a crash costs no attempt, and one delivery at most.
func (f found) counted(w *world, attempts int) string {
	for _, d := range f.deliveries {
		if d.Attempt > attempts || d.Deliveries > 2 {
			return fmt.Sprintf("want %d attempts and 2 deliveries at most", attempts)
		}
		if f.completed && d.Attempt != attempts && !w.commitsLate() {
			return fmt.Sprintf("want attempt %d, since that was answered", attempts)
		}
	}
	return ""
}
