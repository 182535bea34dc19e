package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// TestLateWritesOfAZombie: an owner that was stopped for longer than its session writes a retry and a commit when it
// goes on. The next owner has settled the message meanwhile: neither it nor those after it are disturbed.
//
// Lesson: L41
func TestLateWritesOfAZombie(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "z"+rand.Text()[:10]+"."
	w := &wire{}
	zombie, err := kafka.New(t.Context(), kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 1,
		InternalPartitions: 1, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	publish(t, zombie, message("a", "k"), message("free", "j"), message("b", "k"))
	zs := subscribe(t, zombie, "zombie")
	x := receive(t, zs)
	release := w.hold()
	defer release()
	stopped := time.Now()
	answer := make(chan error, 1)
	go func() {
		answer <- zs.Settle(t.Context(), []driver.Settlement{{Delivery: x, Outcome: driver.Retry, After: time.Millisecond,
			Failure: &driver.Failure{Reason: driver.ReasonFatal}}})[0]
	}()
	heir := open(t, c, namespace)
	hs := subscribe(t, heir, "heir")
	y := receive(t, hs)
	t.Logf("delivered again %v after its owner stopped", time.Since(stopped))
	if y.ID != "a" || y.Attempt != 1 {
		t.Fatalf("received %s, attempt %d", y.ID, y.Attempt)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if ds, err := zs.Receive(ctx, 10); err == nil {
		t.Errorf("the zombie hands out %s, which is with its successor", ds[0].ID)
	}
	if err := zs.Extend(t.Context(), []*driver.Delivery{x})[0]; !errors.Is(err, driver.ErrLeaseLost) {
		t.Errorf("the zombie extends its lease: %v", err)
	}
	settle(t, hs, y, driver.Ack, 0)
	release()
	// it was sent: whether it came in time is for the next owner to say
	if err := <-answer; !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("the zombie is told %v", err)
	}
	end(t, zombie)
	rest := map[string]bool{"b": true, "free": true}
	for range len(rest) {
		z := receive(t, hs)
		if !rest[z.ID] || z.Attempt != 1 {
			t.Errorf("received %s, attempt %d after the zombie wrote; missing %v", z.ID, z.Attempt, rest)
		}
		delete(rest, z.ID)
		settle(t, hs, z, driver.Ack, 0)
	}
	end(t, heir)
	next := open(t, c, namespace)
	defer end(t, next)
	ns := subscribe(t, next, "next")
	publish(t, next, message("c", "k"))
	if x := receive(t, ns); x.ID != "c" {
		t.Errorf("received %s, attempt %d, which was settled", x.ID, x.Attempt)
	} else {
		settle(t, ns, x, driver.Ack, 0)
	}
	for _, id := range []string{"a", "b", "free"} {
		state(t, next, id, "")
	}
}

// TestRemovedWithoutKnowing: while a group rebalances, an owner is heard of all the time, but does not join again. When
// the time for that is over its partition goes to another; at that moment it knows that what it holds is no longer its
// own, without having been told.
//
// Lesson: L41
func TestRemovedWithoutKnowing(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "z"+rand.Text()[:10]+"."
	w := &wire{}
	removed, err := kafka.New(t.Context(), kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 1,
		InternalPartitions: 1, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, removed)
	publish(t, removed, message("a", "k"))
	rs := subscribe(t, removed, "removed")
	x := receive(t, rs)
	release := w.holdOnly(int16(kmsg.JoinGroup))
	defer release()
	began := time.Now()
	heir := open(t, c, namespace)
	defer end(t, heir)
	hs := subscribe(t, heir, "heir")
	y := receive(t, hs)
	if err := rs.Extend(t.Context(), []*driver.Delivery{x})[0]; !errors.Is(err, driver.ErrLeaseLost) {
		t.Errorf("who was removed extends its lease: %v", err)
	}
	if err := rs.Settle(t.Context(), []driver.Settlement{{Delivery: x}})[0]; !errors.Is(err, driver.ErrLeaseLost) {
		t.Errorf("who was removed settles what another has: %v", err)
	}
	if took := time.Since(began); y.ID != "a" || took < 10*time.Second { // it was heard of longer than a session
		t.Errorf("received %s after %v", y.ID, took)
	}
	settle(t, hs, y, driver.Ack, 0)
	release()
}
