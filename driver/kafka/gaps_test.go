package kafka_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// TestGaps: offsets at which there is no message (of transactions that were aborted, and where they ended) hold up no
// commit.
func TestGaps(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("first", "k"))
	s := subscribe(t, d, "x")
	settle(t, s, receive(t, s), driver.Ack, 0)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.TransactionalID("gaps"+rand.Text()[:6]))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, end := range []kgo.TransactionEndTry{kgo.TryAbort, kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := cl.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{"1", "2", "3"} {
			if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: d.Namespace() + "orders",
				Value: []byte(body)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if err := cl.EndTransaction(t.Context(), end); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * 3 {
		settle(t, s, receive(t, s), driver.Ack, 0)
	}
	const end = 1 + 4*(3+1)
	for deadline := time.Now().Add(time.Minute); d.Unparked("orders", driver.DefaultGroup) < end; {
		if time.Now().After(deadline) {
			t.Fatalf("everything is settled, and offset %d of %d is committed", d.Unparked("orders", driver.DefaultGroup), end)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
