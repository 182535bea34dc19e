package kafka_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

// admin looks at a fake cluster from outside.
func admin(t *testing.T, c *kfake.Cluster) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

func join(t *testing.T, d driver.Driver, group string) driver.Subscription {
	t.Helper()
	s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Group: group, Instance: group,
		Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// trimmedTo trims until a topic begins at an offset, and fails when it ever begins behind it.
func trimmedTo(t *testing.T, d *kafka.Driver, a *kadm.Client, want int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		if err := d.TrimSettled(t.Context()); err != nil {
			t.Fatal(err)
		}
		starts, err := a.ListStartOffsets(t.Context(), d.Namespace()+"orders")
		if err != nil {
			t.Fatal(err)
		}
		start, _ := starts.Lookup(d.Namespace()+"orders", 0)
		if start.Offset == want {
			return
		}
		if start.Offset > want || time.Now().After(deadline) {
			t.Fatalf("the topic begins at %d, want %d", start.Offset, want)
		}
	}
}

// TestTrimmedBehindAllGroups: a topic is trimmed to where the slowest group is, and no further.
//
// Lesson: R13, L28
func TestTrimmedBehindAllGroups(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	a := admin(t, c)
	slow, fast := join(t, d, "slow"), join(t, d, "fast")
	for i := range 10 {
		publish(t, d, message(fmt.Sprint("m", i), "k"))
	}
	for range 10 {
		settle(t, fast, receive(t, fast), driver.Ack, 0)
	}
	trimmedTo(t, d, a, 0)
	for range 4 {
		settle(t, slow, receive(t, slow), driver.Ack, 0)
	}
	trimmedTo(t, d, a, 4)
	settle(t, slow, receive(t, slow), driver.Retry, time.Hour) // it is in the retry log now, with its followers
	trimmedTo(t, d, a, 10)
	if err := d.Move(t.Context(),
		[]driver.Move{{Target: driver.Target{Topic: "orders", Group: "slow", ID: "m4"}}})[0]; err != nil {
		t.Fatal(err)
	}
	for i := 4; i < 10; i++ {
		x := receive(t, slow)
		if want := fmt.Sprint("m", i); x.ID != want || string(x.Body) != want {
			t.Fatalf("received %s after trimming, want %s", x.ID, want)
		}
		settle(t, slow, x, driver.Ack, 0)
	}
}

// TestKeepHolds: what is settled stays for TopicConfig.Keep, and a group can begin there again.
func TestKeepHolds(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	a := admin(t, c)
	if err := d.EnsureTopic(t.Context(), "orders", driver.TopicConfig{Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	publish(t, d, message("a", "k"), message("b", "k"))
	s := subscribe(t, d, "x")
	for range 2 {
		settle(t, s, receive(t, s), driver.Ack, 0)
	}
	if err := s.Close(t.Context()); err != nil { // commits
		t.Fatal(err)
	}
	s = subscribe(t, d, "y")
	trimmedTo(t, d, a, 0)
	report, err := d.Reset(t.Context(), "orders", driver.DefaultGroup,
		driver.ResetOptions{To: driver.Position{From: driver.FromBegin}, Force: true})
	if err != nil || report.Replayed != 2 {
		t.Fatalf("Reset: %+v, %v", report, err)
	}
	if x := receive(t, s); x.ID != "a" || x.Cause != driver.CauseReplay {
		t.Errorf("received %s, %s", x.ID, x.Cause)
	}
}

// TestResetByForce: a group that another process consumes is set back from here. Its consumer joins again by itself,
// and gets everything once more.
func TestResetByForce(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	operator := again(t, d, c.ListenAddrs())
	if err := d.EnsureTopic(t.Context(), "orders", driver.TopicConfig{Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	publish(t, d, message("a", "k"), message("b", "k"), message("c", "k"))
	s := subscribe(t, d, "x")
	for range 2 {
		settle(t, s, receive(t, s), driver.Ack, 0)
	}
	held := receive(t, s)
	to := driver.ResetOptions{To: driver.Position{From: driver.FromBegin}}
	if _, err := operator.Reset(t.Context(), "orders", driver.DefaultGroup, to); !errors.Is(err, driver.ErrConflict) {
		t.Fatalf("a reset under a consumer: %v", err)
	}
	to.Force = true
	if _, err := operator.Reset(t.Context(), "orders", driver.DefaultGroup, to); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a", "b", "c"} {
		x := receive(t, s)
		if x.ID != want || x.Cause != driver.CauseReplay {
			t.Errorf("received %s, %s after the reset, want %s", x.ID, x.Cause, want)
		}
		settle(t, s, x, driver.Ack, 0)
	}
	if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: held}})[0]; !errors.Is(err, driver.ErrLeaseLost) {
		t.Errorf("what was held before the reset is settled: %v", err)
	}
}

// TestIdleGroupsAreKept: the offsets of a group without consumers are committed again as they are, and those of others
// left alone.
func TestIdleGroupsAreKept(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	a := admin(t, c)
	idle := join(t, d, "idle")
	busy := join(t, d, "busy")
	publish(t, d, message("a", "1"), message("b", "2"), message("c", "3"))
	first := receive(t, idle)
	settle(t, idle, receive(t, idle), driver.Ack, 0) // beyond the first, which stays
	settle(t, idle, first, driver.Release, 0)
	settle(t, busy, receive(t, busy), driver.Ack, 0)
	if err := idle.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	name := d.Namespace() + "orders"
	before, err := a.FetchOffsets(t.Context(), name+":idle")
	if err != nil {
		t.Fatal(err)
	}
	was, _ := before.Lookup(name, 0)
	if was.At != 0 || was.Metadata == "" {
		t.Fatalf("the idle group is at %d with %q", was.At, was.Metadata)
	}
	var mu sync.Mutex
	revived := map[string]kmsg.OffsetCommitRequestTopicPartition{}
	c.ControlKey(int16(kmsg.OffsetCommit), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if req := kreq.(*kmsg.OffsetCommitRequest); req.Generation < 0 {
			mu.Lock()
			revived[req.Group] = req.Topics[0].Partitions[0]
			mu.Unlock()
		}
		return nil, nil, false
	})
	if err := d.Revive(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	again, ok := revived[name+":idle"]
	if !ok || again.Offset != was.At || again.Metadata == nil || *again.Metadata != was.Metadata {
		t.Errorf("the idle group was committed as %+v, want %d with %q", again, was.At, was.Metadata)
	}
	if _, ok := revived[name+":busy"]; ok {
		t.Error("a group with consumers was committed from outside")
	}
}
