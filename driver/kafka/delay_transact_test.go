package kafka_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
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

// delayed is a message that waits in the shortest tier.
func delayed(id string) *driver.Message {
	m := message(id, "k")
	m.Delay = 100 * time.Millisecond
	return m
}

// arrives demands that messages come in this order, and none beside them.
func arrives(t *testing.T, s driver.Subscription, ids ...string) {
	t.Helper()
	for _, id := range ids {
		x := receive(t, s)
		if x.ID != id {
			t.Errorf("received %s, want %s", x.ID, id)
		}
		settle(t, s, x, driver.Ack, 0)
	}
}

// TestFireIsOneStep: when a transaction in which a delayed message leaves its tier is refused, or its end is not
// answered, it fires all the same, and once.
func TestFireIsOneStep(t *testing.T) {
	t.Parallel()
	harms := map[string]kmsg.Key{"commit": kmsg.TxnOffsetCommit, "offsets": kmsg.AddOffsetsToTxn,
		"end": kmsg.EndTxn, "answer": kmsg.EndTxn}
	for name, key := range harms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, w := fake(t), &wire{}
			d, err := kafka.New(t.Context(), kafka.Options{Brokers: c.ListenAddrs(), Namespace: "o" + rand.Text()[:6] + ".",
				Partitions: 1, InternalPartitions: 1, Transactions: true, Dial: w.dial})
			if err != nil {
				t.Fatal(err)
			}
			defer end(t, d)
			s := subscribe(t, d, "x")
			var harmed atomic.Int32
			c.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
				if harmed.Add(1) > 1 {
					return nil, nil, false
				}
				if name != "answer" {
					return refusal(req), nil, true
				}
				w.cut() // it is done, and nobody hears of it
				w.mend()
				return nil, nil, false
			})
			publish(t, d, delayed("a"))
			arrives(t, s, "a")
			if harmed.Load() == 0 {
				t.Error("no transaction was harmed")
			}
			publish(t, d, delayed("b")) // what fires twice comes before it: both wait in one tier
			arrives(t, s, "b")
		})
	}
}

// TestFiredIsNotFiredAgain: a process fires a delayed message and is killed before it commits anything else. With
// transactions who comes after it knows.
func TestFiredIsNotFiredAgain(t *testing.T) {
	t.Parallel()
	c, w, namespace := fake(t), &wire{}, "o"+rand.Text()[:6]+"."
	o := kafka.Options{Brokers: c.ListenAddrs(), Namespace: namespace, Partitions: 1, InternalPartitions: 1,
		Transactions: true, Dial: w.dial}
	doomed, err := kafka.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		w.mend()
		end(t, doomed)
	}()
	var killed atomic.Bool
	c.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		commit := req.(*kmsg.OffsetCommitRequest)
		if !killed.Load() && commit.Group == namespace+"_ferry.delay" {
			return refusedCommit(commit, kerr.RebalanceInProgress), nil, true
		}
		return nil, nil, false
	})
	publish(t, doomed, delayed("a"))
	ds := subscribe(t, doomed, "doomed")
	if x := receive(t, ds); x.ID != "a" {
		t.Fatalf("received %s", x.ID)
	}
	w.cut()
	killed.Store(true)
	expel(t, c, namespace+"_ferry.delay")
	expel(t, c, namespace+"orders:default")
	heir := openTransactional(t, c.ListenAddrs(), namespace)
	defer end(t, heir)
	hs := subscribe(t, heir, "heir")
	arrives(t, hs, "a") // whose holder was killed
	publish(t, heir, delayed("b"))
	arrives(t, hs, "b")
}

// TestWhoFiresIsWaitedForNoLonger: a process that does not join again holds up those who fire no longer than a group.
func TestWhoFiresIsWaitedForNoLonger(t *testing.T) {
	t.Parallel()
	c := fake(t)
	var mu sync.Mutex
	waits := map[string]int32{}
	c.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		join := req.(*kmsg.JoinGroupRequest)
		waits[join.Group] = join.RebalanceTimeoutMillis
		return nil, nil, false
	})
	d := openFake(t, c)
	publish(t, d, delayed("a"))
	arrives(t, subscribe(t, d, "x"), "a")
	mu.Lock()
	defer mu.Unlock()
	group, fires := waits[d.Namespace()+"orders:default"], waits[d.Namespace()+"_ferry.delay"]
	if group == 0 || fires != group {
		t.Errorf("a rebalance waits %d ms for who fires, and %d ms for a consumer", fires, group)
	}
}

// BenchmarkDelay is how late delayed messages come to a consumer that waits, one due every 20 ms, with and without
// transactions.
func BenchmarkDelay(b *testing.B) {
	c := kafkatest.Shared(b)
	for _, transactions := range []bool{false, true} {
		b.Run(fmt.Sprintf("transactions=%t", transactions), func(b *testing.B) {
			d, err := kafka.New(b.Context(), kafka.Options{Brokers: c.Addrs(), Namespace: "d" + rand.Text()[:10] + ".",
				Partitions: 3, InternalPartitions: 2, Transactions: transactions})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = d.Close(context.Background()) }()
			const warm = 20 // connections are made
			n := warm + b.N
			go func() {
				for i := range n {
					m := message(fmt.Sprint("m", i), fmt.Sprint("k", i))
					m.At = time.Now().Add(500 * time.Millisecond)
					if _, err := d.Publish(b.Context(), []*driver.Message{m}, driver.PublishOptions{}); err != nil {
						b.Error(err)
					}
					time.Sleep(20 * time.Millisecond)
				}
			}()
			o := driver.SubscribeOptions{Topic: "orders", Instance: "x", Lease: time.Minute}
			s, err := d.Subscribe(b.Context(), o)
			if err != nil {
				b.Fatal(err)
			}
			var late []time.Duration
			for len(late) < n {
				ds, err := s.Receive(b.Context(), 10)
				if err != nil {
					b.Fatal(err)
				}
				for _, x := range ds {
					late = append(late, time.Since(x.At))
					s.Settle(b.Context(), []driver.Settlement{{Delivery: x}})
				}
			}
			late = late[warm:]
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}
