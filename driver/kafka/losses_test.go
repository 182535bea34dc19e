package kafka_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

func begin(t *testing.T, s driver.Subscription, x *driver.Delivery) {
	t.Helper()
	if err := s.Begin(t.Context(), []*driver.Delivery{x})[0]; err != nil {
		t.Fatalf("Begin of %s: %v", x.ID, err)
	}
}

// lives lets one owner of a group after the other receive a message and die, with what they do before that, and demands
// what the deliveries say.
func lives(t *testing.T, lives []func(d *kafka.Driver, s driver.Subscription, x *driver.Delivery), deliveries ...int) {
	t.Helper()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	for life, live := range lives {
		d, w := mortal(t, c, namespace)
		if life == 0 {
			publish(t, d, message("a", "k"), message("behind", "k"))
		}
		s := subscribe(t, d, "x")
		x := receive(t, s)
		if x.ID != "a" || x.Deliveries != deliveries[life] {
			t.Fatalf("life %d gets %s as delivery %d, %s; want %d", life, x.ID, x.Deliveries, x.Cause, deliveries[life])
		}
		if life == 0 { // it is committed who is held, or nobody knows
			if err := d.CommitDirty(t.Context(), "orders", driver.DefaultGroup); err != nil {
				t.Fatal(err)
			}
		}
		live(d, s, x)
		w.cut()
		expel(t, c, namespace+"orders:default")
	}
}

// TestUnseenLossesDoNotCount: the first holder that dies is counted, and of the others those whose handlers had begun,
// each by its own start: not by that of a delivery that was given back, nor by that of an owner that left in order.
func TestUnseenLossesDoNotCount(t *testing.T) {
	t.Parallel()
	type live = func(d *kafka.Driver, s driver.Subscription, x *driver.Delivery)
	die := func(*kafka.Driver, driver.Subscription, *driver.Delivery) {}
	begun := func(_ *kafka.Driver, s driver.Subscription, x *driver.Delivery) { begin(t, s, x) }
	released := func(_ *kafka.Driver, s driver.Subscription, x *driver.Delivery) {
		begin(t, s, x)
		settle(t, s, x, driver.Release, 0)
		receive(t, s)
	}
	closed := func(_ *kafka.Driver, s driver.Subscription, x *driver.Delivery) {
		begin(t, s, x)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lives(t, []live{die, die, begun, die, released, die, closed, die, begun, die}, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4)
}

// TestVisitKeepsLosses: an operator changes something of a group whose last owner died. The next owner counts what that
// cost all the same.
func TestVisitKeepsLosses(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "l"+rand.Text()[:10]+"."
	dying, w := mortal(t, c, namespace)
	publish(t, dying, message("begun", "1"), message("held", "2"), message("other", "3"))
	s := subscribe(t, dying, "x")
	for range 2 {
		if x := receive(t, s); x.ID == "begun" {
			begin(t, s, x)
		}
	}
	if err := dying.CommitDirty(t.Context(), "orders", driver.DefaultGroup); err != nil {
		t.Fatal(err)
	}
	w.cut()
	expel(t, c, namespace+"orders:default")
	heir, _ := mortal(t, c, namespace)
	if err := heir.Delete(t.Context(), []driver.Target{target("other")})[0]; err != nil {
		t.Fatal(err)
	}
	hs := subscribe(t, heir, "heir")
	for range 2 {
		if x := receive(t, hs); x.Deliveries != 2 || x.Cause != driver.CauseLeaseExpired {
			t.Errorf("%s comes as delivery %d, %s", x.ID, x.Deliveries, x.Cause)
		}
	}
}

// TestLateWordReachesTheNextOwner: a process is stopped while its handler runs, loses its partition, and goes on. What
// it says of the delivery then, or that it closes, tells the next owner that it lives.
func TestLateWordReachesTheNextOwner(t *testing.T) {
	t.Parallel()
	for name, speak := range map[string]func(t *testing.T, s driver.Subscription, x *driver.Delivery){
		"extend": func(t *testing.T, s driver.Subscription, x *driver.Delivery) {
			if err := s.Extend(t.Context(), []*driver.Delivery{x})[0]; !errors.Is(err, driver.ErrLeaseLost) {
				t.Errorf("Extend: %v", err)
			}
		},
		"settle": func(t *testing.T, s driver.Subscription, x *driver.Delivery) {
			if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: x}})[0]; !errors.Is(err, driver.ErrLeaseLost) {
				t.Errorf("Settle: %v", err)
			}
		},
		"close": func(t *testing.T, s driver.Subscription, _ *driver.Delivery) {
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, namespace := fake(t), "l"+rand.Text()[:10]+"."
			stopped, w := mortal(t, c, namespace)
			publish(t, stopped, message("a", "k"))
			old := subscribe(t, stopped, "stopped")
			x := receive(t, old)
			begin(t, old, x)
			release := w.hold()
			defer release()
			expel(t, c, namespace+"orders:default")
			heir, _ := mortal(t, c, namespace)
			s := subscribe(t, heir, "heir")
			y := receive(t, s)
			if y.Deliveries != 2 {
				t.Fatalf("the next owner gets delivery %d", y.Deliveries)
			}
			release()
			for stopped.Holds("orders", driver.DefaultGroup) { // until it knows
				time.Sleep(10 * time.Millisecond)
			}
			speak(t, old, x)
			for deadline := time.Now().Add(time.Minute); y.Deliveries != 1; {
				if time.Now().After(deadline) {
					t.Fatalf("it still is delivery %d", y.Deliveries)
				}
				settle(t, s, y, driver.Release, 0)
				y = receive(t, s)
			}
			settle(t, s, y, driver.Ack, 0)
		})
	}
}
