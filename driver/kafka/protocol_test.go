package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

func message(id, key string) *driver.Message {
	return &driver.Message{ID: id, Topic: "orders", Key: key, Body: []byte(id)}
}

func publish(t *testing.T, d driver.Driver, ms ...*driver.Message) {
	t.Helper()
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
}

func subscribe(t *testing.T, d driver.Driver, instance string) driver.Subscription {
	t.Helper()
	s, err := d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: "orders", Instance: instance, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func end(t *testing.T, d driver.Driver) {
	t.Helper()
	if err := d.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestRebalance lets processes come and go while messages flow: none is lost, none is handled twice, keys stay in
// order.
func TestRebalance(t *testing.T) {
	t.Parallel()
	const messages, keys = 800, 40
	c, namespace := kafkatest.Shared(t), "r"+rand.Text()[:10]+"."
	producer := open(t, c, namespace)
	defer end(t, producer)
	publish(t, producer, message("first", "k0"))

	w := &witness{last: map[string]string{}, seen: map[string]int{}}
	stop := make([]func(), 3)
	for i := range stop {
		stop[i] = work(t, w, open(t, c, namespace), fmt.Sprint("w", i))
	}
	for i := range messages {
		publish(t, producer, message(fmt.Sprintf("m%06d", i), fmt.Sprint("k", i%keys)))
		if i == messages/3 {
			stop[0]()
		}
		if i == messages/2 {
			stop[0] = work(t, w, open(t, c, namespace), "w3")
		}
	}
	deadline := time.Now().Add(time.Minute)
	for w.count() < messages+1 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	for _, f := range stop {
		f()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) != messages+1 {
		t.Errorf("%d of %d messages were handled", len(w.seen), messages+1)
	}
	for id, n := range w.seen {
		if n > 1 {
			t.Errorf("%s was handled %d times", id, n)
		}
	}
	for _, complaint := range w.disorder {
		t.Error(complaint)
	}
}

// witness notes what was handled.
type witness struct {
	mu       sync.Mutex
	seen     map[string]int
	last     map[string]string
	disorder []string
}

func (w *witness) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

func (w *witness) note(d *driver.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[d.ID]++
	if last := w.last[d.Key]; d.ID != "first" && w.seen[d.ID] == 1 {
		if last > d.ID {
			w.disorder = append(w.disorder, fmt.Sprintf("%s came after %s", d.ID, last))
		}
		w.last[d.Key] = d.ID
	}
}

// work handles messages until the returned function is called.
func work(t *testing.T, w *witness, d *kafka.Driver, instance string) (stop func()) {
	s := subscribe(t, d, instance)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			ds, err := s.Receive(ctx, 10)
			if err != nil {
				return
			}
			for _, x := range ds {
				w.note(x)
				if err := s.Settle(context.Background(), []driver.Settlement{{Delivery: x}})[0]; err != nil &&
					!errors.Is(err, driver.ErrLeaseLost) {
					t.Error(err)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
		end(t, d)
	}
}

// TestForeignProducer checks that a record of a plain Kafka client is a message, and that ours is a plain record.
func TestForeignProducer(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "f"+rand.Text()[:10]+"."
	d := open(t, c, namespace)
	defer end(t, d)
	publish(t, d, message("ours", "k"))
	plain, err := kgo.NewClient(kgo.SeedBrokers(c.Addrs()...), kgo.ConsumeTopics(namespace+"orders"),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	r := plain.PollFetches(t.Context()).Records()[0]
	if string(r.Key) != "k" || string(r.Value) != "ours" {
		t.Errorf("a plain client reads key %q, value %q", r.Key, r.Value)
	}
	foreign := &kgo.Record{Topic: namespace + "orders", Key: []byte("k"), Value: []byte("theirs"),
		Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("x")}}}
	if err := plain.ProduceSync(t.Context(), foreign).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if foreign.Partition != r.Partition {
		t.Errorf("their partitioner puts the key on %d, ours on %d", foreign.Partition, r.Partition)
	}
	s := subscribe(t, d, "x")
	for _, want := range []string{"ours", "theirs"} {
		ds, err := s.Receive(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := ds[0]; string(got.Body) != want || got.Key != "k" || (want == "theirs" && got.Headers["ce_type"] != "x") {
			t.Errorf("received %q with key %q and headers %v, want %q", got.Body, got.Key, got.Headers, want)
		}
		if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: ds[0]}})[0]; err != nil {
			t.Error(err)
		}
	}
}
