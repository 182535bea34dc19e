package guard_test

import (
	"context"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/worker"
)

// TestGuardsProtectBatchHandlers: of a batch only what the guards let pass reaches the handler, and the rest comes
// later or never.
func TestGuardsProtectBatchHandlers(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		once := must(guard.NewDedup(memoryStore(),
			guard.DedupOptions{Name: "once", ID: func(d *ferry.Delivery) string { return d.Headers["order"] }}))(t)
		few := must(guard.NewConcurrency(memoryStore(),
			guard.ConcurrencyOptions{Name: "all", Key: guard.Constant("x"), Max: 2}))(t)
		handled, most := map[string]int{}, 0
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			most = max(most, len(ms))
			for _, m := range ms {
				handled[string(m.Value)]++
			}
			return nil
		}, worker.Use(once.Middleware(), few.Middleware()))
		for _, body := range []string{"a", "b", "c", "d"} {
			r.publish(body, ferry.Header("order", body))
			r.publish(body, ferry.Header("order", body))
		}
		ctx, cancel := context.WithCancel(r.ctx)
		done := make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		r.until(time.Minute)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(handled) != 4 || handled["a"]+handled["b"]+handled["c"]+handled["d"] != 4 || most != 2 {
			t.Errorf("handled %v, at most %d at once; want each once, 2 at once", handled, most)
		}
		if s := r.stats(); s.Acked != 8 {
			t.Errorf("%+v", s)
		}
	})
}
