// Package runtest runs in the background what a test needs.
package runtest

import (
	"context"
	"sync"
	"testing"
)

// Start runs something until the test ends, or until stop is called. It has to end without an error.
func Start(t testing.TB, runs ...func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range runs {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("it ended with: %v", err)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}
