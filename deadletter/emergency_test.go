package deadletter_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/worker"
)

// What a worker wrote in an emergency is left out while the broker has it, and comes back once into one that lost it.
func TestTheEmergencyFileIsImported(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "emergency.ndjson")
	synctest.Test(t, func(t *testing.T) {
		d := faulty.New(newMemory(t, memory.Options{}))
		d.Set(faulty.Settle, func(_ context.Context, c faulty.Call, _ func()) error {
			if c.Settlement.Outcome == driver.Dead {
				return driver.ErrNotApplied
			}
			return nil
		})
		k := newKit(t, broker(t, d))
		k.publish(&driver.Message{ID: "m", Body: []byte("\xffhello"), Headers: map[string]string{"a": "b"}})
		b, err := ferry.New(shared{k.d}, ferry.Options{})
		k.ok(err)
		w := worker.New(b, worker.Options{Emergency: worker.Emergency{File: file}})
		worker.Handle(w, topic, func(context.Context, *ferry.Msg[[]byte]) error { return worker.Fatal(errors.New("no")) })
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		_ = w.Run(ctx) // says that outcomes were not accepted
		saved, err := os.Open(file)
		k.ok(err)
		defer func() { _ = saved.Close() }()
		got, err := k.queue.Import(k.ctx(), saved, deadletter.ImportOptions{})
		k.ok(err)
		if got != (deadletter.ImportReport{Lines: 1, Present: 1}) {
			k.Errorf("the broker still has it: %+v", got)
		}
		lost := newKit(t, broker(t, newMemory(t, memory.Options{})))
		for _, want := range []deadletter.ImportReport{{Lines: 1, Published: 1}, {Lines: 1, Present: 1}} {
			_, err := saved.Seek(0, 0)
			k.ok(err)
			got, err := lost.queue.Import(k.ctx(), saved, deadletter.ImportOptions{})
			k.ok(err)
			if got != want {
				k.Errorf("%+v, want %+v", got, want)
			}
		}
		lost.take(topic, driver.DefaultGroup, 1, func(d *driver.Delivery) driver.Settlement {
			if string(d.Body) != "\xffhello" || d.Headers["a"] != "b" ||
				d.Headers[deadletter.HeaderReplayOf] != "orders/default/m" {
				k.Errorf("%q %v", d.Body, d.Headers)
			}
			return driver.Settlement{Outcome: driver.Ack}
		})
	})
}
