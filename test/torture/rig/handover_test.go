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
		for range messages {
			if _, err := ferry.Publish(ctx, broker, topic, []byte("work")); err != nil {
				t.Fatal(err)
			}
		}
		arrived := make(chan struct{}, messages)
		run := func(ctx context.Context, work time.Duration) <-chan error {
			w := worker.New(broker, worker.Options{Concurrency: 1})
			worker.HandleRaw(w, topic, func(context.Context, *ferry.Delivery) error {
				arrived <- struct{}{}
				time.Sleep(work)
				return nil
			})
			done := make(chan error, 1)
			go func() { done <- w.Run(ctx) }()
			return done
		}
		quick := func(n int) { // the first messages are quick, so that the worker holds some in advance
			for range n {
				<-arrived
			}
		}

		stopping, stop := context.WithCancel(ctx)
		old := run(stopping, 30*time.Millisecond)
		quick(10)
		time.Sleep(10 * time.Millisecond) // one runs, others wait for it
		stop()
		told := time.Now()
		next, end := context.WithCancel(ctx)
		other := run(next, 0)
		quick(1)
		if took := time.Since(told); took > 5*time.Millisecond {
			t.Errorf("the next worker got its first message %v after the other was told to stop", took)
		}
		quick(messages - 11)
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
