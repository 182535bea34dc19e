package kafka_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestLogFromAnotherProcess: who does not consume sees who does and what it has, and replays for it.
func TestLogFromAnotherProcess(t *testing.T) {
	t.Parallel()
	c, namespace := fake(t), "g"+rand.Text()[:10]+"."
	d, _ := mortal(t, c, namespace)
	if err := d.EnsureTopic(t.Context(), "orders", driver.TopicConfig{Partitions: 1, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	s := subscribe(t, d, "x")
	for i := range 4 {
		publish(t, d, message(fmt.Sprint("m", i), "k"))
	}
	for range 2 {
		settle(t, s, receive(t, s), driver.Ack, 0)
	}
	held := receive(t, s)
	other, _ := mortal(t, c, namespace)
	var g driver.PartitionGroup
	// it goes by commits
	for deadline := time.Now().Add(time.Minute); g.Lag+g.Pending != 2 ||
		g.Owner == ""; time.Sleep(10 * time.Millisecond) {
		ps, err := other.Partitions(t.Context(), "orders")
		if err != nil || len(ps) != 1 || ps[0].Entries != 4 || len(ps[0].Groups) != 1 {
			t.Fatalf("partitions %+v, %v", ps, err)
		}
		if g = ps[0].Groups[0]; time.Now().After(deadline) {
			t.Fatalf("the group is %+v", g)
		}
	}
	page, err := other.Pending(t.Context(), driver.PendingQuery{Topic: "orders", Group: driver.DefaultGroup})
	if err != nil || len(page.Entries) == 0 || page.Entries[0].ID != held.ID ||
		page.Entries[0].State != driver.StateInflight || page.Entries[0].Instance != "" {
		t.Errorf("pending are %+v, %v", page, err)
	}
	for range 2 { // repeated, it is the same
		if report, err := other.Replay(t.Context(), "orders", driver.DefaultGroup, driver.ReplayOptions{}); err != nil ||
			report.Replayed > 2 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	settle(t, s, held, driver.Ack, 0)
	want := []string{"m3", "m0", "m1"} // behind what was there of their key
	for _, id := range want {
		x := receive(t, s)
		if x.ID != id {
			t.Fatalf("received %s, want %s of %v", x.ID, id, want)
		}
		settle(t, s, x, driver.Ack, 0)
	}
	if err := s.Close(t.Context()); err != nil { // what is settled is committed
		t.Fatal(err)
	}
	if left, err := other.Pending(t.Context(), driver.PendingQuery{Topic: "orders",
		Group: driver.DefaultGroup}); err != nil || len(left.Entries) > 0 {
		t.Errorf("pending are %+v, %v", left, err)
	}
}
