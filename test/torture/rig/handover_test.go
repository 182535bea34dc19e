package rig

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/worker"
)

// A worker that is told to stop hands over what it has not started at once: nobody waits for its slowest handler.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		broker, err := memory.Open(ctx, memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const messages = 40
		for i := range messages {
			if _, err := ferry.Publish(ctx, broker, Topic, i); err != nil {
				t.Fatal(err)
			}
		}
		arrived := make(chan int, messages)
		run := func(ctx context.Context, work time.Duration) <-chan error {
			w := worker.New(broker, worker.Options{Concurrency: 1})
			worker.Handle(w, Topic, func(_ context.Context, m *ferry.Msg[int]) error {
				arrived <- m.Value
				time.Sleep(work)
				return nil
			})
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			return done
		}
		expect := func(from, to int) {
			t.Helper()
			for want := from; want < to; want++ {
				if got := <-arrived; got != want {
					t.Fatalf("message %d started, want %d: what the old worker had fetched was not handed over at once", got, want)
				}
			}
		}

		stopping, stop := context.WithCancel(ctx)
		old := run(stopping, 30*time.Millisecond)
		expect(0, 10)
		time.Sleep(10 * time.Millisecond) // one runs, and others, fetched in advance, wait for it
		stop()
		synctest.Wait()
		next, end := context.WithCancel(ctx)
		other := run(next, 0)
		expect(10, messages)
		end()
		for _, done := range []<-chan error{old, other} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := broker.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
