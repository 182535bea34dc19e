package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/drivertest"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

func openTransactional(t testing.TB, brokers []string, namespace string) *kafka.Driver {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := kafka.New(ctx, kafka.Options{Brokers: brokers, Namespace: namespace, Partitions: 3, InternalPartitions: 1,
		Transactions: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// transacted are the cases that transactions change.
var transacted = regexp.MustCompile(
	`^(emit/|atomic/|move/|dead/replay|delay/|expiry/before due|invalid/mended|capabilities/pinned)`)

// TestDriverWithTransactions runs those cases of the suite that a transaction changes.
func TestDriverWithTransactions(t *testing.T) {
	t.Parallel()
	c := kafkatest.Shared(t)
	h := harness(driver.AtomicTransaction,
		func(t testing.TB, namespace string) *kafka.Driver { return openTransactional(t, c.Addrs(), namespace) })
	h.Only = transacted
	drivertest.Run(t, h)
}

func emitting(d *driver.Delivery, outcome driver.Outcome, ids ...string) driver.Settlement {
	s := driver.Settlement{Delivery: d, Outcome: outcome, After: time.Millisecond,
		Failure: &driver.Failure{Reason: driver.ReasonFatal}}
	for _, id := range ids {
		m := message(id, "")
		m.Topic, m.OwnID = "followups", true
		s.Emit = append(s.Emit, m)
	}
	return s
}

// persist settles as a worker does: what was not applied is tried again.
func persist(t *testing.T, s driver.Subscription, batch ...driver.Settlement) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); len(batch) > 0; {
		var again []driver.Settlement
		for i, err := range s.Settle(t.Context(), batch) {
			if errors.Is(err, driver.ErrNotApplied) && time.Now().Before(deadline) {
				again = append(again, batch[i])
			} else if err != nil {
				t.Fatalf("%s: %v", batch[i].Delivery.ID, err)
			}
		}
		batch = again
	}
}

// TestEmitIsOneStep: when the commit is refused, nothing of the follow-ups is seen, and the same again stores them
// once.
func TestEmitIsOneStep(t *testing.T) {
	t.Parallel()
	for _, key := range []kmsg.Key{kmsg.TxnOffsetCommit, kmsg.AddOffsetsToTxn, kmsg.EndTxn} {
		t.Run(kmsg.NameForKey(int16(key)), func(t *testing.T) {
			t.Parallel()
			c := fake(t)
			d := openTransactional(t, c.ListenAddrs(), "e"+rand.Text()[:6]+".")
			defer end(t, d)
			publish(t, d, message("parent", "k"), message("next", "k"))
			s := subscribe(t, d, "x")
			var refused atomic.Int32
			c.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
				if refused.Add(1) > 1 {
					return nil, nil, false
				}
				return refusal(req), nil, true
			})
			x := receive(t, s)
			err := s.Settle(t.Context(), []driver.Settlement{emitting(x, driver.Ack, "f1", "f2")})[0]
			if !errors.Is(err, driver.ErrNotApplied) || refused.Load() == 0 {
				t.Fatalf("a transaction that was refused (%d times): %v", refused.Load(), err)
			}
			persist(t, s, emitting(x, driver.Ack, "f1", "f2"))
			if y := receive(t, s); y.ID != "next" {
				t.Errorf("received %s after the parent was settled", y.ID)
			}
			only(t, d, "f1", "f2")
		})
	}
}

// refusal answers a request of a transaction as a coordinator that has fenced it.
func refusal(kreq kmsg.Request) kmsg.Response {
	switch req := kreq.(type) {
	case *kmsg.TxnOffsetCommitRequest:
		resp := req.ResponseKind().(*kmsg.TxnOffsetCommitResponse)
		t, p := kmsg.NewTxnOffsetCommitResponseTopic(), kmsg.NewTxnOffsetCommitResponseTopicPartition()
		t.Topic, p.Partition, p.ErrorCode = req.Topics[0].Topic, req.Topics[0].Partitions[0].Partition,
			kerr.IllegalGeneration.Code
		t.Partitions = append(t.Partitions, p)
		resp.Topics = append(resp.Topics, t)
		return resp
	case *kmsg.AddOffsetsToTxnRequest:
		resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return resp
	}
	resp := kreq.ResponseKind().(*kmsg.EndTxnResponse)
	resp.ErrorCode = kerr.UnknownServerError.Code
	return resp
}

// only demands that these follow-ups come, each once, and no others.
func only(t *testing.T, d *kafka.Driver, want ...string) driver.Subscription {
	t.Helper()
	s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "followups", Instance: "y", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for range want {
		x := receive(t, s)
		got[x.ID]++
		settle(t, s, x, driver.Ack, 0)
	}
	for _, id := range want {
		if got[id] != 1 {
			t.Errorf("follow-ups %v, want %v", got, want)
		}
	}
	nothing(t, s)
	return s
}

// nothing demands that there is nothing more to receive.
func nothing(t *testing.T, s driver.Subscription) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if ds, err := s.Receive(ctx, 1); err == nil {
		t.Errorf("%s came beside the others", ds[0].ID)
	}
}

// TestEmitWithEachOutcome: whatever the outcome, it is there with its follow-ups for the next owner, who reads only
// what is committed.
func TestEmitWithEachOutcome(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "e"+rand.Text()[:10]+"."
	d := openTransactional(t, c.Addrs(), namespace)
	var want []string
	for i, outcome := range []driver.Outcome{driver.Ack, driver.Retry, driver.Dead, driver.Drop, driver.Release} {
		publish(t, d, message(outcome.String(), fmt.Sprint("k", i)))
		want = append(want, "after-"+outcome.String())
	}
	s := subscribe(t, d, "x")
	outcomes := map[string]driver.Outcome{"ack": driver.Ack, "retry": driver.Retry, "dead": driver.Dead,
		"drop": driver.Drop, "release": driver.Release}
	var batch []driver.Settlement
	for range want {
		x := receive(t, s)
		batch = append(batch, emitting(x, outcomes[x.ID], "after-"+x.ID))
		batch[len(batch)-1].After = time.Minute
		batch[len(batch)-1].Emit[0].Delay = 10 * time.Millisecond
	}
	persist(t, s, batch...)
	end(t, d)
	d = openTransactional(t, c.Addrs(), namespace)
	defer end(t, d)
	only(t, d, want...)
	for id, want := range map[string]driver.State{"retry": driver.StateWaiting, "release": driver.StateWaiting,
		"dead": driver.StateDead, "ack": "", "drop": ""} {
		state(t, d, id, want)
	}
}

// TestOpenTransactionOfADeadOwner: an owner that dies between the commit of a transaction's offsets and its end holds
// nobody up for longer than the session, its follow-ups are never seen, and those of the next owner once.
func TestOpenTransactionOfADeadOwner(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "e"+rand.Text()[:10]+"."
	w := &wire{fatal: int16(kmsg.EndTxn)}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dying, err := kafka.New(ctx, kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 1,
		InternalPartitions: 1, Transactions: true, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	defer end(t, dying)
	publish(t, dying, message("parent", "k"))
	s := subscribe(t, dying, "dying")
	x := receive(t, s)
	settling, cancel := context.WithCancel(t.Context())
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- s.Settle(settling, []driver.Settlement{emitting(x, driver.Ack, "f1", "f2")})[0] }()
	w.wait(t)
	died := time.Now()
	heir := openTransactional(t, c.Addrs(), namespace)
	defer end(t, heir)
	hs := subscribe(t, heir, "heir")
	y := receive(t, hs)
	t.Logf("the parent came again %v after its owner died in a transaction", time.Since(died))
	if y.ID != "parent" {
		t.Fatalf("received %s", y.ID)
	}
	persist(t, hs, emitting(y, driver.Ack, "f1", "f2"))
	cancel()
	if err := <-answer; err == nil {
		t.Error("the dead owner believes that its settlement stands")
	}
	only(t, heir, "f1", "f2")
}

// BenchmarkEmit settles messages with one follow-up each, in calls of some sizes: follow-ups first, or in transactions.
func BenchmarkEmit(b *testing.B) {
	c := kafkatest.Shared(b)
	for _, transactions := range []bool{false, true} {
		for _, size := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("transactions=%v/size=%d", transactions, size), func(b *testing.B) {
				ctx := context.Background()
				d, err := kafka.New(ctx, kafka.Options{Brokers: c.Addrs(), Namespace: "b" + rand.Text()[:10] + ".", Partitions: 3,
					InternalPartitions: 1, Transactions: transactions})
				if err != nil {
					b.Fatal(err)
				}
				defer func() { _ = d.Close(ctx) }()
				fill(b, d, b.N*size+1, func(m *driver.Message) { m.Key = "" })
				s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "orders", Instance: "x", Lease: time.Minute})
				if err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				for range b.N {
					var batch []driver.Settlement
					for len(batch) < size {
						ds, err := s.Receive(ctx, size-len(batch))
						if err != nil {
							b.Fatal(err)
						}
						for _, x := range ds {
							batch = append(batch, emitting(x, driver.Ack, "f"+x.ID))
						}
					}
					for _, err := range s.Settle(ctx, batch) {
						if err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "msgs/s")
			})
		}
	}
}

// TestEmitExactlyOnce: consumers that settle with a follow-up each join, leave, and are cut off in the middle. However
// often a parent is handled, its follow-up is there once.
func TestEmitExactlyOnce(t *testing.T) {
	t.Parallel()
	const parents = 150
	c, namespace := kafkatest.Shared(t), "e"+rand.Text()[:10]+"."
	d := openTransactional(t, c.Addrs(), namespace)
	defer end(t, d)
	for i := range parents {
		publish(t, d, message(fmt.Sprintf("m%03d", i), fmt.Sprint("k", i%20)))
	}
	w := &wire{}
	doomed, err := kafka.New(t.Context(), kafka.Options{Brokers: c.Addrs(), Namespace: namespace, Partitions: 3,
		InternalPartitions: 1, Transactions: true, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan string, 10*parents)
	stopDoomed := emitter(t, doomed, "doomed", handled)
	stopLeaving := emitter(t, openTransactional(t, c.Addrs(), namespace), "leaving", handled)
	stopLate := func() {}
	seen := map[string]bool{}
	for len(seen) <= parents/2 { // not all: of what was settled when the wire was cut nobody learns that it was
		select {
		case id := <-handled:
			if seen[id] {
				continue
			}
			seen[id] = true
		case <-time.After(time.Minute):
			t.Fatalf("only %d parents were handled", len(seen))
		}
		switch len(seen) {
		case parents / 4:
			w.cut()
			stopLate = emitter(t, openTransactional(t, c.Addrs(), namespace), "late", handled)
		case parents / 2:
			stopLeaving()
		}
	}
	want := make([]string, 0, parents)
	for i := range parents {
		want = append(want, fmt.Sprintf("f-m%03d", i))
	}
	followUps := only(t, d, want...)
	stopLeaving()
	stopDoomed()
	stopLate()
	nothing(t, followUps)
}

// emitter settles messages with a follow-up each until the returned function is called.
func emitter(t *testing.T, d *kafka.Driver, instance string, handled chan<- string) (stop func()) {
	s := subscribe(t, d, instance)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			ds, err := s.Receive(ctx, 5)
			if err != nil {
				return
			}
			var batch []driver.Settlement
			for _, x := range ds {
				batch = append(batch, emitting(x, driver.Ack, "f-"+x.ID))
			}
			for len(batch) > 0 && ctx.Err() == nil { // refused in the middle of a rebalance
				var again []driver.Settlement
				for i, err := range s.Settle(ctx, batch) {
					switch {
					case err == nil:
						handled <- batch[i].Delivery.ID
					case errors.Is(err, driver.ErrNotApplied):
						again = append(again, batch[i])
					}
				}
				batch = again
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
		end(t, d)
	})
}
