package kafka_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// TestJustPublishedIsFound: a transaction is answered a moment before its records can be read. Whoever deletes what was
// published a moment ago finds it all the same, also in another process.
func TestJustPublishedIsFound(t *testing.T) {
	t.Parallel()
	c, namespace := kafkatest.Shared(t), "j"+rand.Text()[:10]+"."
	ds := []*kafka.Driver{openTransactional(t, c.Addrs(), namespace), openTransactional(t, c.Addrs(), namespace)}
	defer end(t, ds[0])
	defer end(t, ds[1])
	for name, delay := range map[string]time.Duration{"ready": 0, "delayed": time.Hour, "held": driver.Hold} {
		for round := range 25 {
			var batch []*driver.Message
			for i := range 10 {
				m := message(fmt.Sprint(name, round, ".", i), fmt.Sprint(i)) // over several partitions
				m.Topic, m.Delay = name, delay
				batch = append(batch, m)
			}
			if _, err := ds[0].Publish(t.Context(), batch, atomically); err != nil {
				t.Fatal(err)
			}
			if err := ds[round%2].Delete(t.Context(), []driver.Target{{Topic: name, ID: batch[9].ID}})[0]; err != nil {
				t.Errorf("deleting what is %s: %v", name, err)
			}
		}
	}
}

// TestFoundBehindATransaction: what was published behind somebody's open transaction cannot be read before that ends.
// Whoever looks for it meanwhile waits.
func TestFoundBehindATransaction(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("before", ""))
	other, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := other.ProduceSync(t.Context(), &kgo.Record{Topic: d.Namespace() + "orders"}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	publish(t, d, message("behind", ""))
	var looks atomic.Int32
	looked := make(chan struct{})
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if r := req.(*kmsg.ListOffsetsRequest); r.IsolationLevel == 1 && r.Topics[0].Topic == d.Namespace()+"orders" &&
			looks.Add(1) == 3 {
			close(looked)
		}
		return nil, nil, false
	})
	deleted := make(chan error, 1)
	go func() { deleted <- d.Delete(t.Context(), []driver.Target{{Topic: "orders", ID: "behind"}})[0] }()
	select {
	case err := <-deleted:
		t.Fatalf("it did not wait: %v", err)
	case <-looked:
	}
	if err := other.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	if err := <-deleted; err != nil {
		t.Error(err)
	}
}

// TestNotReadYet: while the consumer of this process cannot read what was published, nobody says that it is not there.
func TestNotReadYet(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("first", ""))
	s := subscribe(t, d, "a")
	receive(t, s)
	var once sync.Once
	holding, held := make(chan struct{}), make(chan struct{})
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if req.(*kmsg.FetchRequest).SessionEpoch >= 0 { // of a member
			once.Do(func() { close(holding) })
			c.SleepControl(func() { <-held })
		}
		return nil, nil, false
	})
	<-holding
	publish(t, d, message("second", ""))
	second := []driver.Target{{Topic: "orders", ID: "second"}}
	hinted(t, d.Delete(t.Context(), second)[0], driver.ErrNotApplied)
	close(held)
	if err := d.Delete(t.Context(), second)[0]; err != nil {
		t.Error(err)
	}
}
