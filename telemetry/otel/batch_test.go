package otel_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/telemetry/otel"
	"github.com/ferrymq/ferry/worker"
)

// TestBatchLinks: a batch is one span with a link to each of its messages.
func TestBatchLinks(t *testing.T) {
	virtual(t, otel.Options{}, func(r *rig) {
		r.work(func(w *worker.Worker) {
			worker.HandleBatch(w, "orders", otel.Batch(r.tracing, func(ctx context.Context, ms []*ferry.Msg[int]) error {
				if len(ms) == 3 {
					_, err := ferry.Publish(ctx, r.broker, "sums", len(ms))
					return err
				}
				return worker.Fatal(context.DeadlineExceeded)
			}), worker.BatchSize(3), worker.BatchWait(time.Second))
		})
		for i := range 4 {
			if _, err := ferry.Publish(t.Context(), r.broker, "orders", i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		batches, sends := r.ended("process orders"), r.ended("send orders")
		if len(batches) != 2 || len(sends) != 4 {
			t.Fatalf("%v", r.names())
		}
		for i, link := range batches[0].Links() {
			if link.SpanContext.SpanID() != sends[i].SpanContext().SpanID() {
				t.Errorf("link %d is to another span", i)
			}
		}
		if len(batches[0].Links()) != 3 || batches[0].Parent().IsValid() || !below(batches[0], r.one("send sums")) {
			t.Errorf("%v, parent %v", batches[0].Links(), batches[0].Parent())
		}
		r.has(batches[0], map[string]string{"messaging.batch.message_count": "3", "messaging.destination.name": "orders"})
		r.has(batches[1], map[string]string{"messaging.batch.message_count": "1", "error.type": "timeout"})
		if batches[1].Status().Code != codes.Error {
			t.Errorf("%v", batches[1].Status())
		}
	})
}
