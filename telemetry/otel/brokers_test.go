package otel_test

import (
	"context"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/telemetry/otel"
	"github.com/ferrymq/ferry/worker"
)

// TestContextTravels on every broker, over a retry.
func TestContextTravels(t *testing.T) {
	brokers := map[string]func(t *testing.T, o ferry.Options) (*ferry.Broker, error){
		"disk": func(t *testing.T, o ferry.Options) (*ferry.Broker, error) {
			return disk.Open(t.Context(), disk.Options{Dir: t.TempDir(), Broker: o})
		},
		"redis": func(t *testing.T, o ferry.Options) (*ferry.Broker, error) {
			return redis.Open(t.Context(), redis.Options{URL: redistest.Shared(t).URL(), Prefix: "otel", Broker: o})
		},
		"redisstream": func(t *testing.T, o ferry.Options) (*ferry.Broker, error) {
			return redisstream.Open(t.Context(), redisstream.Options{URL: redistest.Shared(t).URL(), Prefix: "otels", Broker: o})
		},
		"kafka": func(t *testing.T, o ferry.Options) (*ferry.Broker, error) {
			return kafka.Open(t.Context(), kafka.Options{Brokers: kafkatest.Shared(t).Addrs(), Namespace: "otel.", Broker: o})
		},
	}
	for name, open := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, otel.Options{})
			var err error
			if r.broker, err = open(t, ferry.Options{Hooks: r.tracing.Hooks()}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.broker.Close(context.Background()) })
			done := make(chan struct{})
			w := worker.New(r.broker, worker.Options{Retry: ferry.Delays(time.Millisecond)})
			w.Use(r.tracing.Middleware())
			worker.HandleRaw(w, "orders", func(_ context.Context, d *ferry.Delivery) error {
				if d.Attempt == 1 {
					return context.DeadlineExceeded
				}
				close(done)
				return nil
			})
			stop := runtest.Start(t, w.Run)
			if _, err := ferry.Publish(t.Context(), r.broker, "orders", 1); err != nil {
				t.Fatal(err)
			}
			<-done
			stop()
			attempts := r.ended("process orders")
			if len(attempts) != 2 || !below(r.one("send orders"), attempts[0]) || !below(r.one("send orders"), attempts[1]) {
				t.Errorf("%v", r.names())
			}
		})
	}
}
