package howto_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

// ledger stands for a table with a unique column.
type ledger struct {
	booked map[string]int
	down   bool // the next insert fails
}

func (l *ledger) insertOnce(id string, amount int) error {
	if l.down {
		l.down = false
		return errors.New("the database is away")
	}
	if _, done := l.booked[id]; !done {
		l.booked[id] = amount
	}
	return nil
}

func TestIdempotent(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		db := &ledger{booked: map[string]int{}, down: true}
		w := worker.New(k.Broker, worker.Options{})

		//snippet:begin insert
		worker.Handle(w, "payments", func(_ context.Context, m *ferry.Msg[int]) error {
			return db.insertOnce(m.ID, m.Value) // INSERT ... ON CONFLICT (message_id) DO NOTHING
		})
		//snippet:end

		k.Start(w)
		k.FailSettle(1, errors.New("the network broke after the handler had succeeded"))
		if _, err := ferry.Publish(t.Context(), k.Broker, "payments", 100); err != nil {
			t.Fatal(err)
		}
		k.Drain()
		k.ExpectAcked("payments", 1)
		if len(db.booked) != 1 {
			t.Fatalf("%v", db.booked)
		}
	})
}

func TestDedupOnConsume(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		sent := 0
		w := worker.New(k.Broker, worker.Options{})

		//snippet:begin dedup
		once, err := guard.NewDedup(guard.NewMemory(guard.MemoryOptions{}), guard.DedupOptions{
			Name: "mail",
			ID:   func(d *ferry.Delivery) string { return d.Headers["order"] }, // the work, not the message
		})
		if err != nil {
			t.Fatal(err)
		}
		worker.Handle(w, "mails", func(context.Context, *ferry.Msg[string]) error {
			sent++
			return nil
		}, worker.Use(once.Middleware()))
		//snippet:end

		k.Start(w)
		for range 3 {
			if _, err := ferry.Publish(t.Context(), k.Broker, "mails", "thank you", ferry.Header("order", "4711")); err != nil {
				t.Fatal(err)
			}
		}
		k.Drain()
		k.ExpectAcked("mails", 3)
		if sent != 1 {
			t.Fatalf("%d mails were sent", sent)
		}
	})
}
