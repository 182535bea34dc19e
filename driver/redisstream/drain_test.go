package redisstream_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func (w *world) stats() driver.GroupStats {
	w.Helper()
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	return st.Groups[0]
}

// A member that drains owns nothing from then on, whatever it holds: another owns every partition at once. It is a
// member until it closes.
func TestDrainGivesUpEveryPartition(t *testing.T) {
	w := newWorld(t)
	a := w.subscribe("a", time.Hour)
	w.publish(0, 1, "k")
	held := w.take(a, 1)
	w.ok(a.Drain(w.ctx()))
	if got := distinct(w.owners()); len(got) != 1 || got[""] == 0 {
		t.Errorf("without another member, owners are %v", got)
	}
	b := w.subscribe("b", time.Hour)
	if got := distinct(w.owners()); len(got) != 1 || got[""] != 0 {
		t.Errorf("beside a member that drains, owners are %v", got)
	}
	w.publish(1, 2, "k") // behind what a holds
	w.publish(2, 3, "j")
	if d := w.take(b, 1)[0]; d.Key != "j" {
		t.Errorf("%s came, although its key is held", d.ID)
	}
	if n := w.stats().Consumers; n != 2 {
		t.Errorf("%d consumers while one drains, want 2", n)
	}
	if err := w.d.DeleteGroup(w.ctx(), "jobs", "default"); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("the group is deleted while a member drains: %v", err)
	}
	w.ok(a.Extend(w.ctx(), held)[0])
	w.settle(a, driver.Ack, held...)
	if d := w.take(b, 1)[0]; d.Key != "k" || d.Deliveries != 1 || d.Cause != driver.CauseFirst {
		t.Errorf("the next of the key came as %s, deliveries %d, %s", d.ID, d.Deliveries, d.Cause)
	}
	w.ok(a.Close(w.ctx()))
	w.ok(b.Close(w.ctx()))
	w.sound()
}

// What a claim took whose answer was lost goes back when its member drains: no claim follows that would find it.
func TestDrainReturnsUnansweredClaims(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	hook := &deaf{}
	s, err := w.beside(hook).Subscribe(w.ctx(), driver.SubscribeOptions{Topic: "jobs", Instance: "a", Lease: time.Hour})
	w.ok(err)
	w.publish(0, 3, "")
	hook.armed.Store(true)
	if _, err := s.Receive(w.ctx(), 3); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("a claim whose answer is lost: %v", err)
	}
	w.ok(s.Drain(w.ctx()))
	for _, d := range w.take(w.subscribe("b", time.Hour), 3) {
		if d.Deliveries != 1 || d.Cause != driver.CauseFirst {
			t.Errorf("%s came with deliveries %d, %s", d.ID, d.Deliveries, d.Cause)
		}
	}
	w.sound()
}

// lostOnce is a subscription with the shortest lease, and a delivery of it after one lost lease.
func (w *world) lostOnce() (driver.Subscription, *driver.Delivery) {
	w.Helper()
	w.onePartition()
	s := w.subscribe("a", time.Second)
	w.publish(0, 1, "")
	w.take(s, 1)
	d := w.take(s, 1)[0]
	if d.Deliveries != 2 {
		w.Fatalf("deliveries %d after the first lost lease", d.Deliveries)
	}
	return s, d
}

// begun begins a delivery in time: one whose lease was over first, on a slow machine, comes again at no cost, because
// it had not begun. It tells how many leases were lost so.
func (w *world) begun(s driver.Subscription, d *driver.Delivery) (_ *driver.Delivery, lost uint64) {
	w.Helper()
	for {
		err := s.Begin(w.ctx(), []*driver.Delivery{d})[0]
		if !errors.Is(err, driver.ErrLeaseLost) {
			w.ok(err)
			return d, lost
		}
		lost++
		d = w.take(s, 1)[0]
	}
}

// again releases a delivery and demands how often it counts as delivered when it comes again.
func (w *world) again(s driver.Subscription, d *driver.Delivery, want int) *driver.Delivery {
	w.Helper()
	// a release after the end of the lease is no other case: what has not begun does not count as lost either
	if err := s.Settle(w.ctx(), []driver.Settlement{{Delivery: d, Outcome: driver.Release}})[0]; !errors.Is(err,
		driver.ErrLeaseLost) {
		w.ok(err)
	}
	d = w.take(s, 1)[0]
	if d.Deliveries != want {
		w.Errorf("deliveries %d, want %d", d.Deliveries, want)
	}
	return d
}

// A holder that closes in order lives, also when another has had its message since.
func TestCloseTakesItsCountBack(t *testing.T) {
	w := newWorld(t)
	a, d := w.lostOnce()
	w.begun(a, d)
	w.ok(a.Drain(w.ctx())) // the partition goes to the other
	b := w.subscribe("b", time.Minute)
	d = w.take(b, 1)[0]
	if d.Deliveries != 3 {
		t.Errorf("deliveries %d after the loss of a delivery that had begun", d.Deliveries)
	}
	w.ok(a.Close(w.ctx()))
	w.again(b, d, 2)
	w.sound()
}

// The word of a holder that comes after the end of its lease, and before anybody has noticed that, is as good as a
// later one.
func TestLateWordBeforeTheLossIsNoticed(t *testing.T) {
	for name, speak := range map[string]func(w *world, s driver.Subscription, d *driver.Delivery) error{
		"extend": func(w *world, s driver.Subscription, d *driver.Delivery) error {
			return s.Extend(w.ctx(), []*driver.Delivery{d})[0]
		},
		"ack": func(w *world, s driver.Subscription, d *driver.Delivery) error {
			return s.Settle(w.ctx(), []driver.Settlement{{Delivery: d}})[0]
		},
		"retry": func(w *world, s driver.Subscription, d *driver.Delivery) error {
			return s.Settle(w.ctx(), []driver.Settlement{{Delivery: d, Outcome: driver.Retry}})[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, d := w.lostOnce()
			d, lost := w.begun(s, d)
			time.Sleep(time.Until(d.LeaseUntil) + 10*time.Millisecond) // nobody looks meanwhile
			if err := speak(w, s, d); !errors.Is(err, driver.ErrLeaseLost) {
				t.Errorf("after the end of the lease: %v", err)
			}
			if d = w.take(s, 1)[0]; d.Deliveries != 2 || d.Cause != driver.CauseLeaseExpired {
				t.Errorf("deliveries %d, %s; want 2, lease_expired", d.Deliveries, d.Cause)
			}
			if n := w.stats().Redelivered; n != 2+lost {
				t.Errorf("%d lost leases are counted, want %d", n, 2+lost)
			}
			w.again(s, d, 2)
			w.sound()
		})
	}
}

// Records of an earlier version tell how many leases were lost, and nothing more.
func TestLossesOfOldRecords(t *testing.T) {
	w := newWorld(t)
	s, _ := w.lostOnce()
	ids := w.c.HKeys(w.ctx(), w.part("g:default:state")).Val()
	id := ids[slices.IndexFunc(ids, func(id string) bool { return id != "" })]
	w.ok(w.c.Eval(w.ctx(), `local s = cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1]))
		s.h, s.u, s.b = nil, nil, nil
		return redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(s))`, []string{w.part("g:default:state")}, id).Err())
	if d := w.take(s, 1)[0]; d.Deliveries != 2 {
		t.Errorf("deliveries %d after a second loss that had not begun", d.Deliveries)
	}
}

// The tokens of the latest 16 lost deliveries are remembered.
func TestLostDeliveriesAreRememberedWithinABound(t *testing.T) {
	w := newWorld(t)
	s, d := w.lostOnce()
	ids := w.c.HKeys(w.ctx(), w.part("g:default:state")).Val()
	id := ids[slices.IndexFunc(ids, func(id string) bool { return id != "" })]
	w.ok(w.c.Eval(w.ctx(), `local s = cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1]))
		s.u, s.x = {}, 17
		for i = 1, 16 do s.u[i] = 'old' .. i end
		return redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(s))`, []string{w.part("g:default:state")}, id).Err())
	w.begun(s, d)
	if d = w.take(s, 1)[0]; d.Deliveries != 19 {
		t.Errorf("deliveries %d, want 19", d.Deliveries)
	}
	n, err := w.c.Eval(w.ctx(), `local s = cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1]))
		return {#s.u, s.u[1]}`, []string{w.part("g:default:state")}, id).Slice()
	w.ok(err)
	if n[0] != int64(16) || n[1] != "old2" {
		t.Errorf("%v tokens are remembered, the first %v", n[0], n[1])
	}
}

// A member that has closed is none, also where it was closed while it drained.
func TestClosedIsNoMember(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		a := w.subscribe("a", time.Hour)
		drained := make(chan error, 1)
		go func() { drained <- a.Drain(w.ctx()) }()
		// at another moment of it each time
		for deadline := time.Now().Add(time.Duration(i) * 100 * time.Microsecond); time.Now().Before(deadline); {
		}
		w.ok(a.Close(w.ctx()))
		w.ok(<-drained)
		if err := w.d.DeleteGroup(w.ctx(), "jobs", driver.DefaultGroup); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}
