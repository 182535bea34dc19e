package kafka_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// shareOut opens two processes that consume, and returns when both have partitions.
func shareOut(t *testing.T) (ds [2]*kafka.Driver, ss [2]driver.Subscription) {
	t.Helper()
	c, namespace := kafkatest.Shared(t), "d"+rand.Text()[:8]+"."
	for i := range ds {
		ds[i] = open(t, c, namespace)
		t.Cleanup(func() { end(t, ds[i]) })
		ss[i] = subscribe(t, ds[i], fmt.Sprint(i))
	}
	for deadline := time.Now().Add(time.Minute); ds[0].Owned("orders") == 0 || ds[1].Owned("orders") == 0 ||
		ds[0].Owned("orders")+ds[1].Owned("orders") != 3; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("they own %d and %d partitions", ds[0].Owned("orders"), ds[1].Owned("orders"))
		}
	}
	return ds, ss
}

// TestDrainPassesPartitionsOn: while a process drains, others get what it holds nothing of at once, and the rest when
// it is settled. Nothing is lost or counted.
func TestDrainPassesPartitionsOn(t *testing.T) {
	t.Parallel()
	ds, ss := shareOut(t)
	held := make(chan *driver.Delivery, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := 0
	for i, s := range ss { // whoever gets it drains
		go func() {
			if got, err := s.Receive(ctx, 1); err == nil {
				first = i
				held <- got[0]
			}
		}()
	}
	publish(t, ds[0], message("long", "k"))
	x := <-held
	a, b, other := ss[first], ss[1-first], ds[1-first]
	cancel()
	if err := a.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	const messages = 60
	for i := range messages {
		publish(t, other, message(fmt.Sprint("m", i), fmt.Sprint("k", i)))
	}
	get := func(n int) {
		t.Helper()
		for range n {
			d := receive(t, b)
			if d.Deliveries != 1 || d.Cause != driver.CauseFirst {
				t.Errorf("%s comes as delivery %d, %s", d.ID, d.Deliveries, d.Cause)
			}
			settle(t, b, d, driver.Ack, 0)
		}
	}
	elsewhere := messages
	page, err := ds[first].Browse(t.Context(), driver.Query{Topic: "orders", Group: driver.DefaultGroup,
		State: driver.StateReady, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Entries {
		if e.Ref.Partition == x.Ref.Partition {
			elsewhere--
		}
	}
	get(elsewhere)
	if n := ds[first].Owned("orders"); n != 1 {
		t.Errorf("who drains owns %d partitions, and holds a message of one", n)
	}
	settle(t, a, x, driver.Ack, 0)
	get(messages - elsewhere)
	if n := ds[first].Owned("orders"); n != 0 {
		t.Errorf("who drains owns %d partitions, and holds nothing", n)
	}
}

// TestDrainAlone: without another member a process keeps its partitions while it drains; who subscribes in it again
// receives.
func TestDrainAlone(t *testing.T) {
	t.Parallel()
	d := openFake(t, fake(t))
	publish(t, d, message("a", "k"), message("b", "j"))
	s := subscribe(t, d, "x")
	x := receive(t, s)
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.PassOn("orders")
	settle(t, s, x, driver.Ack, 0)
	again := subscribe(t, d, "y")
	if y := receive(t, again); y.ID == x.ID {
		t.Errorf("%s came again", y.ID)
	}
}
