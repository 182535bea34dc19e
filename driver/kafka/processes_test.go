package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// pair is a consumer and an operator in another process, as far as Kafka can tell.
func pair(t *testing.T) (owner, operator *kafka.Driver, s driver.Subscription) {
	t.Helper()
	c, namespace := kafkatest.Shared(t), "p"+rand.Text()[:10]+"."
	owner, operator = open(t, c, namespace), open(t, c, namespace)
	t.Cleanup(func() { end(t, owner); end(t, operator) })
	publish(t, owner, message("first", "k"))
	s = subscribe(t, owner, "owner")
	settle(t, s, receive(t, s), driver.Ack, 0)
	return owner, operator, s
}

func receive(t *testing.T, s driver.Subscription) *driver.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ds, err := s.Receive(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	return ds[0]
}

func settle(t *testing.T, s driver.Subscription, d *driver.Delivery, outcome driver.Outcome, after time.Duration) {
	t.Helper()
	x := driver.Settlement{Delivery: d, Outcome: outcome, After: after}
	if outcome != driver.Ack {
		x.Failure = &driver.Failure{Reason: driver.ReasonFatal, Error: "test"}
	}
	if err := s.Settle(t.Context(), []driver.Settlement{x})[0]; err != nil {
		t.Fatal(err)
	}
}

func target(id string) driver.Target {
	return driver.Target{Topic: "orders", Group: driver.DefaultGroup, ID: id}
}

// state is what another process sees; it goes by commits, which come a moment later.
func state(t *testing.T, d driver.Driver, id string, want driver.State) {
	t.Helper()
	got := driver.State("not asked")
	for deadline := time.Now().Add(10 * time.Second); got != want && time.Now().Before(deadline); {
		es, err := d.Get(t.Context(), target(id))
		switch {
		case errors.Is(err, driver.ErrNotFound):
			got = ""
		case err != nil:
			t.Fatal(err)
		default:
			got = es[0].State
		}
	}
	if got != want {
		t.Errorf("%s is %q for another process, want %q", id, got, want)
	}
}

// TestManagedFromElsewhere: what another process asks for is done by the owner of the partition.
func TestManagedFromElsewhere(t *testing.T) {
	t.Parallel()
	owner, operator, s := pair(t)
	publish(t, owner, message("waits", "k"), message("behind", "k"))
	settle(t, s, receive(t, s), driver.Retry, time.Hour)
	state(t, operator, "waits", driver.StateWaiting)
	if err := operator.Delete(t.Context(), []driver.Target{target("behind")})[0]; err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if err := operator.Move(t.Context(), []driver.Move{{Target: target("waits")}})[0]; err != nil {
		t.Fatalf("Move: %v", err)
	}
	d := receive(t, s)
	if d.ID != "waits" || d.Attempt != 2 || d.Cause != driver.CauseReplay {
		t.Errorf("received %s, attempt %d, %s; want what was moved", d.ID, d.Attempt, d.Cause)
	}
	state(t, operator, "waits", driver.StateInflight)
	if err := operator.Delete(t.Context(), []driver.Target{target("waits")})[0]; !errors.Is(err, driver.ErrConflict) {
		t.Errorf("Delete of what is in flight: got %v, want ErrConflict", err)
	}
	settle(t, s, d, driver.Dead, 0)
	state(t, operator, "waits", driver.StateDead)
	if err := operator.Move(t.Context(), []driver.Move{{Target: target("waits")}})[0]; err != nil {
		t.Fatalf("replay: %v", err)
	}
	if d := receive(t, s); d.ID != "waits" || d.Attempt != 1 || d.Cause != driver.CauseReplay {
		t.Errorf("received %s, attempt %d, %s; want the replay", d.ID, d.Attempt, d.Cause)
	} else {
		settle(t, s, d, driver.Ack, 0)
	}
}

// TestPurgedFromElsewhere: also what is fetched, or not yet, is purged, and nothing that comes later.
func TestPurgedFromElsewhere(t *testing.T) {
	t.Parallel()
	owner, operator, s := pair(t)
	if err := owner.Pause(t.Context(), "orders", "", true); err != nil {
		t.Fatal(err)
	}
	var ms []*driver.Message
	for i := range 500 {
		ms = append(ms, message(fmt.Sprint("old", i), fmt.Sprint("k", i%7)))
	}
	publish(t, owner, ms...)
	n, err := operator.Purge(t.Context(), "orders", driver.DefaultGroup)
	if err != nil || n != len(ms) {
		t.Errorf("Purge: %d, %v; want %d", n, err, len(ms))
	}
	publish(t, operator, message("new", "k1"))
	if err := operator.Pause(t.Context(), "orders", "", false); err != nil {
		t.Fatal(err)
	}
	d := receive(t, s)
	if d.ID != "new" {
		t.Errorf("received %s after the purge", d.ID)
	}
	settle(t, s, d, driver.Ack, 0)
}

// TestCountedFromElsewhere: another process sees the counts that owners commit.
func TestCountedFromElsewhere(t *testing.T) {
	t.Parallel()
	owner, operator, s := pair(t)
	publish(t, owner, message("a", "k"), message("b", "k"), message("c", "other"))
	settle(t, s, receive(t, s), driver.Retry, time.Hour)
	var got driver.GroupStats
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		st, err := operator.Stats(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		if got = st.Groups[0]; got.Ready == 2 && got.Waiting == 1 && got.Acked == 1 {
			return
		}
	}
	t.Errorf("another process counts %+v; want 2 ready, 1 waiting, 1 acked", got)
}

// TestDelayedByAnother: who consumes fires what a process delayed that is gone.
func TestDelayedByAnother(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "p"+rand.Text()[:10]+"."
	owner := open(t, c, namespace)
	defer end(t, owner)
	publish(t, owner, message("first", "k"))
	s := subscribe(t, owner, "owner")
	settle(t, s, receive(t, s), driver.Ack, 0)
	other := open(t, c, namespace)
	m := message("later", "k")
	m.Delay = 2 * time.Second
	start := time.Now()
	publish(t, other, m)
	end(t, other)
	d := receive(t, s)
	if waited := time.Since(start); d.ID != "later" || waited < m.Delay {
		t.Errorf("received %s after %v, want what was delayed by %v", d.ID, waited, m.Delay)
	}
	settle(t, s, d, driver.Ack, 0)
}

// TestDelaysFireOnce: processes that fire delayed messages stop in order and are replaced meanwhile. Nothing comes
// twice, nothing early.
func TestDelaysFireOnce(t *testing.T) {
	t.Parallel()
	const delayed, stops = 300, 3
	c := fake(t) // where an answer never takes seconds, after which a stop goes on without its commit
	d := openFake(t, c)
	publish(t, d, message("first", "k"))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	var ms []*driver.Message
	for i := range delayed {
		m := message(fmt.Sprintf("m%03d", i), fmt.Sprint("k", i%7))
		m.Delay = 200*time.Millisecond + time.Duration(i)*10*time.Millisecond
		ms = append(ms, m)
	}
	helper := again(t, d, c.ListenAddrs())
	publish(t, helper, ms...)
	start := time.Now()
	seen := map[string]int{}
	for len(seen) < delayed {
		x := receive(t, s)
		if seen[x.ID]++; seen[x.ID] > 1 {
			t.Errorf("%s came %d times", x.ID, seen[x.ID])
		}
		settle(t, s, x, driver.Ack, 0)
		if n := len(seen); n%(delayed/stops) == delayed/stops/2 && seen[x.ID] == 1 {
			end(t, helper)
			helper = again(t, d, c.ListenAddrs())
			later := message(fmt.Sprint("later", n), "k")
			later.Delay = time.Hour
			publish(t, helper, later) // it fires too
		}
	}
	end(t, helper)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if ds, err := s.Receive(ctx, 1); err == nil {
		t.Errorf("%s came again, %v after the publish", ds[0].ID, time.Since(start))
	}
}
