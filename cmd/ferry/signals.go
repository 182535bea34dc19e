package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interruptible returns a context that ends at the first signal to stop, and a function that gives everything back. By
// the time the context ends signals have their usual effect again: a second one cuts short a stop that takes too long.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	var group sync.WaitGroup
	group.Go(func() {
		defer cancel()
		defer signal.Stop(signals)
		select {
		case <-signals:
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		group.Wait()
	}
}
