package howto_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/worker"
)

//snippet:begin main

// run handles messages until Kubernetes sends SIGTERM; then it finishes what it has begun.
func run(b *ferry.Broker, mux *http.ServeMux, handle worker.Handler) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	w := worker.New(b, worker.Options{StopTimeout: 20 * time.Second}) // less than terminationGracePeriodSeconds
	worker.HandleRaw(w, "orders", handle)
	mux.Handle("/ready", ready(w))
	return w.Run(ctx)
}

// ready says whether every subscription is connected, for a readiness probe.
func ready(w *worker.Worker) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		all := w.Health()
		for _, h := range all {
			if h.State != worker.OK {
				http.Error(rw, h.Topic+" is "+string(h.State), http.StatusServiceUnavailable)
				return
			}
		}
		if len(all) == 0 {
			http.Error(rw, "not started", http.StatusServiceUnavailable)
		}
	}
}

//snippet:end

func TestGracefulStop(t *testing.T) {
	t.Run("the handler finishes", func(t *testing.T) { stopWhile(t, 15*time.Second, 1) })
	t.Run("the handler is given back", func(t *testing.T) { stopWhile(t, time.Hour, 0) })
}

// stopWhile stops a worker while a handler runs that takes so long.
func stopWhile(t *testing.T, takes time.Duration, acked int) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		w := worker.New(k.Broker, worker.Options{StopTimeout: 20 * time.Second})
		worker.HandleRaw(w, "orders", func(ctx context.Context, _ *ferry.Delivery) error {
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if got := probe(w); got != http.StatusServiceUnavailable {
			t.Errorf("before Run: %d", got)
		}
		k.Start(w)
		if _, err := ferry.Publish(t.Context(), k.Broker, "orders", 1); err != nil {
			t.Fatal(err)
		}
		k.Advance(time.Second)
		if got := probe(w); got != http.StatusOK {
			t.Errorf("at work: %d", got)
		}
		start := time.Now()
		k.Stop()
		if time.Since(start) > 21*time.Second {
			t.Errorf("the stop took %v", time.Since(start))
		}
		k.ExpectAcked("orders", acked)
		k.ExpectRetried("orders", 0)
	})
}

func probe(w *worker.Worker) int {
	r := httptest.NewRecorder()
	ready(w)(r, httptest.NewRequest(http.MethodGet, "/ready", nil))
	return r.Code
}

// TestRun: the program of the page ends on SIGTERM.
func TestRun(t *testing.T) {
	b, end := openMemory(t)
	defer end()
	ended := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		ended <- run(b, http.NewServeMux(), func(context.Context, *ferry.Delivery) error { close(begun); return nil })
	}()
	if _, err := ferry.Publish(t.Context(), b, "orders", 1); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := errors.Join(syscall.Kill(syscall.Getpid(), syscall.SIGTERM), <-ended); err != nil {
		t.Fatal(err)
	}
}
