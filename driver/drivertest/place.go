package drivertest

import (
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// What can happen to the head of a key that leaves it the head.
const (
	retried  = "retried"
	released = "released"
	parked   = "parked"
	lost     = "lost"
)

// fateSteps is how much happens to a head.
const fateSteps = 3

// fates are all sequences of so many of them. Each is also the key of the messages that it happens to.
func fates(steps int) []string {
	if steps == 0 {
		return []string{""}
	}
	var all []string
	for _, before := range fates(steps - 1) {
		for _, last := range []string{retried, released, parked, lost} {
			all = append(all, strings.TrimSpace(before+" "+last))
		}
	}
	return all
}

func headKeepsItsPlace(t *T)    { t.placeKept(1, (*T).succeed) }
func middleKeepsItsPlace(t *T)  { t.placeKept(3, (*T).succeed) }
func restartKeepsThePlace(t *T) { t.survives(); t.placeKept(1, (*T).restartAs) }

// succeed makes another consumer the owner, restartAs one of the next process.
func (t *T) succeed(old *sub) *sub {
	t.Helper()
	old.leave()
	return t.subscribe(driver.SubscribeOptions{Instance: "heir"})
}

func (t *T) restartAs(*sub) *sub {
	t.Helper()
	t.restart()
	return t.subscribe(driver.SubscribeOptions{Instance: "heir"})
}

// placeKept: whatever happened to the head of a key, in any order, the next owner gets it before those behind it. With
// runs it happens to the second message, after the first was acknowledged.
func (t *T) placeKept(run int, next func(*T, *sub) *sub) {
	t.Helper()
	s := t.consumerWith(driver.SubscribeOptions{Lease: t.fateLease(), MaxRun: run})
	var keys []string
	left := []string{"head", "second", "third"}
	for step := range fateSteps { // shorter sequences begin later: all end with the last step
		begin := fates(fateSteps - step)
		var ms []*driver.Message
		for _, k := range begin {
			if run > 1 {
				ms = append(ms, t.msg("before", key(k)))
			}
			ms = append(ms, t.msgs(left, key(k))...)
		}
		t.publish(ms...)
		keys = append(keys, begin...)
		s.befall(keys, step)
	}
	got := map[string][]string{}
	for _, d := range next(t, s).gather(len(left) * len(keys)) {
		got[d.Key] = append(got[d.Key], string(d.Body))
	}
	for _, k := range keys {
		t.equal(got[k], left, fmt.Sprintf("what the next owner gets of a key whose head was %s", k))
	}
}

// replayKeepsItsPlace: a dead letter that was replayed joins the tail of its key once. When its owner leaves, whether
// somebody held it or not, the next one gets it before what came after it.
func replayKeepsItsPlace(t *T) {
	for _, order := range []driver.Order{driver.Strict, driver.Relaxed} {
		for _, held := range []bool{false, true} {
			name := fmt.Sprintf("order-%d-%v", order, held)
			s := t.consumerWith(driver.SubscribeOptions{Group: name, Order: order, MaxRun: 1})
			t.publish(t.msg("replayed", key(name)))
			d := s.one()
			s.bury(d)
			t.move(driver.Move{Target: driver.Target{Topic: topic, Group: name, ID: d.ID}})
			t.publish(t.msg("after", key(name)))
			if held {
				s.expect("replayed")
			}
			s.leave()
			heir := t.subscribe(driver.SubscribeOptions{Group: name, Order: order, MaxRun: 1, Instance: "heir"})
			heir.ack(heir.expect("replayed")...)
			heir.ack(heir.expect("after")...)
		}
	}
}

// befall claims the heads of all keys, and lets the next step happen to them.
func (s *sub) befall(keys []string, step int) {
	s.t.Helper()
	heads := map[string]*driver.Delivery{}
	for len(heads) < len(keys) {
		for _, d := range s.claim() {
			switch string(d.Body) {
			case "before":
				s.ack(d)
			case "head":
				heads[d.Key] = d
			default: // held with its head
				if heads[d.Key] == nil {
					s.t.Fatalf("%s of the key %q came at step %d before its head", d.Body, d.Key, step)
				}
			}
		}
	}
	var ss []driver.Settlement
	for _, k := range keys {
		x := driver.Settlement{Delivery: heads[k], Outcome: driver.Release}
		switch steps := strings.Fields(k); steps[step-fateSteps+len(steps)] {
		case retried:
			x.Outcome, x.Failure = driver.Retry, failure("try again")
		case parked:
			if x.After = quiet; step == fateSteps-1 { // it waits when the owner changes
				x.After = s.t.fateLease() + unit
			}
		case lost:
			continue
		}
		ss = append(ss, x)
	}
	s.settle(ss...)
	s.t.pass(s.t.fateLease() + quiet)
}

// fateLease is for whom many keys are received and settled one after the other: a busy machine takes longer for that
// than the shortest lease of some drivers, and one that is busier than that gets twice the time at each try.
func (t *T) fateLease() time.Duration { return max(t.Caps.MinLease, 3*time.Second) << t.try }
