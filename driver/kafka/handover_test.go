package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// TestHandover: a second consumer joins while the first holds everything. What the first acknowledges, gives back or
// fails when it is told has no other delivery here; what it keeps goes to the second when the time to settle is over,
// uncounted, and the first can no longer settle it.
func TestHandover(t *testing.T) {
	t.Parallel()
	const messages = 30
	c, namespace := kafkatest.Shared(t), "h"+rand.Text()[:10]+"."
	old, heir := open(t, c, namespace), open(t, c, namespace)
	defer end(t, old)
	defer end(t, heir)
	for i := range messages {
		publish(t, old, message(fmt.Sprint("m", i), fmt.Sprint("k", i)))
	}
	var s driver.Subscription
	var mu sync.Mutex
	fate := map[string]string{}
	var kept []*driver.Delivery
	s, err := old.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Instance: "old", Lease: time.Minute,
		Revoking: func(ctx context.Context, ds []*driver.Delivery) {
			mu.Lock()
			defer mu.Unlock()
			for i, d := range ds {
				x := driver.Settlement{Delivery: d, Outcome: []driver.Outcome{driver.Ack, driver.Release, driver.Drop,
					driver.Retry}[i%4]}
				if x.Outcome == driver.Retry {
					x.After, x.Failure = 2*time.Second, &driver.Failure{} // long enough to park what is behind it
				}
				if fate[d.ID] = x.Outcome.String(); x.Outcome == driver.Drop { // stands for a handler that does not end
					fate[d.ID], kept = "kept", append(kept, d)
				} else if err := s.Settle(ctx, []driver.Settlement{x})[0]; err != nil {
					t.Errorf("%s in time: %v", x.Outcome, err)
				}
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	for range messages {
		receive(t, s)
	}
	watching, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		if ds, err := s.Receive(watching, 1); err == nil {
			t.Errorf("%s was given back because its partition goes, and is handed out here again", ds[0].ID)
		}
	}()
	joined := subscribe(t, heir, "heir")
	first := receive(t, joined)
	mu.Lock()
	want := map[string]string{}
	for id, f := range fate {
		if f != "ack" {
			want[id] = f
		}
	}
	mu.Unlock()
	if len(kept) == 0 {
		t.Fatal("nothing was revoked")
	}
	for d := first; ; d = receive(t, joined) {
		attempt, cause := 1, driver.CauseReleased
		switch want[d.ID] {
		case "kept":
			cause = driver.CauseRebalance
		case "retry":
			attempt, cause = 2, driver.CauseRetry
		}
		if want[d.ID] == "" || d.Attempt != attempt || d.Deliveries != 1 || d.Cause != cause {
			t.Errorf("%s (%s) comes as attempt %d, delivery %d, %s", d.ID, fate[d.ID], d.Attempt, d.Deliveries, d.Cause)
		}
		delete(want, d.ID)
		settle(t, joined, d, driver.Ack, 0)
		if len(want) == 0 {
			break
		}
	}
	for _, d := range kept {
		if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: d}})[0]; !errors.Is(err, driver.ErrLeaseLost) {
			t.Errorf("%s is settled by its old holder, after another had it: %v", d.ID, err)
		}
	}
	stop()
	<-over
}

// TestStandbyIsPrepared: a consumer that has no partition yet knows the retry log already. Otherwise it may read it a
// second later than it could when its turn comes.
func TestStandbyIsPrepared(t *testing.T) {
	t.Parallel()
	c := fake(t)
	owner := openFake(t, c)
	standby := again(t, owner, c.ListenAddrs())
	publish(t, owner, message("a", "k"))
	receive(t, subscribe(t, owner, "owner"))
	if standby.Acquainted("orders", driver.DefaultGroup) {
		t.Fatal("the retry log is known before anybody asked for it")
	}
	subscribe(t, standby, "standby")
	for deadline := time.Now().Add(time.Minute); !standby.Acquainted("orders",
		driver.DefaultGroup); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the retry log is not known")
		}
	}
}

// TestStatsAfterStop: what a consumer had fetched and did not get to is counted when it has left.
func TestStatsAfterStop(t *testing.T) {
	t.Parallel()
	const messages = 19
	c := fake(t)
	d := openFake(t, c)
	other := again(t, d, c.ListenAddrs())
	for i := range messages {
		publish(t, d, message(fmt.Sprint("m", i), fmt.Sprint("k", i%5)))
	}
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	receive(t, s)
	count := func() driver.GroupStats {
		st, err := other.Stats(t.Context(), "orders")
		if err != nil {
			t.Fatal(err)
		}
		return st.Groups[0]
	}
	for deadline := time.Now().Add(time.Minute); ; { // all of it is fetched, and told with a commit
		if g := count(); g.Acked == 1 && g.Inflight == 1 {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("another process counts %+v", g)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if g := count(); g.Ready != messages-1 || g.Waiting+g.Inflight != 0 || g.Acked != 1 {
		t.Errorf("after the stop there are %+v; want %d ready, 1 acked", g, messages-1)
	}
}

// TestGivenUpByMistake: the client gives its partitions up because of an error that says nothing of our membership.
// What is held can be settled, and does not come again.
func TestGivenUpByMistake(t *testing.T) {
	t.Parallel()
	c := fake(t)
	// however slow this machine is
	d, err := kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs(), Partitions: 1, InternalPartitions: 1,
		Session: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, d)
	publish(t, d, message("held", "k"))
	var wrong atomic.Bool
	c.ControlKey(int16(kmsg.Heartbeat), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if !wrong.Load() || !strings.HasSuffix(req.(*kmsg.HeartbeatRequest).Group, driver.DefaultGroup) {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
		resp.ErrorCode = kerr.UnknownServerError.Code
		return resp, nil, true
	})
	var s driver.Subscription
	told := make(chan error, 1)
	s, err = d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Instance: "x", Lease: time.Minute,
		Revoking: func(ctx context.Context, ds []*driver.Delivery) {
			told <- s.Settle(ctx, []driver.Settlement{{Delivery: ds[0]}})[0]
			wrong.Store(false)
		}})
	if err != nil {
		t.Fatal(err)
	}
	receive(t, s)
	wrong.Store(true)
	select {
	case err := <-told:
		if err != nil {
			t.Errorf("settling it in time: %v", err)
		}
	case <-time.After(time.Minute):
		wrong.Store(false)
		t.Error("nobody is told that the partition goes")
	}
	publish(t, d, message("after", "k"))
	if x := receive(t, s); x.ID != "after" {
		t.Errorf("received %s again", x.ID)
	}
}
