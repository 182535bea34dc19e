package console

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/guard"
	guardremote "github.com/ferrymq/ferry/guard/remote"
	"github.com/ferrymq/ferry/worker"
)

// startWorker runs a worker of another process, as the server sees it: it joins as billing-1, handles the topic calls
// with a limit by key and a breaker, and never finishes a message with the key slow. It handles the topic attempts,
// too, and fails at it.
func startWorker(t *testing.T, s *ferryServer) {
	t.Helper()
	address := "ferry" + strings.TrimPrefix(s.url, "http")
	broker, err := remote.Open(t.Context(), remote.Options{URL: address, Token: s.token})
	if err != nil {
		t.Fatal(err)
	}
	store, err := guardremote.Open(t.Context(), guardremote.Options{URL: address, Token: s.token})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := guard.NewLimiter(store, guard.LimiterOptions{
		Limits: []guard.Limit{{Name: "calls", Rule: guard.Rule{Limit: 1000, Window: time.Minute}}}, MaxPark: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	breaker, err := guard.NewBreaker(guard.BreakerOptions{Name: "bank", Store: store, Instance: "billing-1",
		MaxPark: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(broker, worker.Options{Concurrency: 4, Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, "calls", func(ctx context.Context, m *ferry.Msg[[]byte]) error {
		if m.Key == "slow" {
			<-ctx.Done()
		}
		return nil
	}, worker.Use(limiter.Middleware(), breaker.Middleware()))
	worker.Handle(w, "attempts", failTwice, worker.MaxAttempts(2),
		worker.Backoff(func(int, error) time.Duration { return time.Second }))
	member, err := cluster.Join(broker, cluster.Options{
		Name: "billing-1", Version: "1.2.3", Workers: []*worker.Worker{w}, Beat: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { logUnlessStopped(ctx, t, w.Run(ctx)) })
	running.Go(func() { logUnlessStopped(ctx, t, member.Run(ctx)) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		_ = broker.Close(context.Background())
		_ = store.Close(context.Background())
	})
}

// failTwice fails as handlers do: with an error, and then by a panic.
func failTwice(_ context.Context, m *ferry.Msg[[]byte]) error {
	if m.Delivery.Attempt == 1 {
		return errors.New("no connection to the ledger")
	}
	panic("the ledger is closed")
}

func logUnlessStopped(ctx context.Context, t *testing.T, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
