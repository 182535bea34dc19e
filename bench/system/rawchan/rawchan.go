// Package rawchan is the limit for anything inside one process: a buffered Go channel, and timers for delays.
//
// It acknowledges nothing, retries nothing and orders nothing by key: what remains above it is the price of a queue.
package rawchan

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// System is a Go channel of bodies.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "raw channel", Version: runtime.Version(),
		Settings: "chan []byte with room for every message of the run; time.AfterFunc for delays; handlers in goroutines; " +
			"no acknowledgement",
		Why: "the least any queue inside a process must do; a batch is a loop, there is nothing cheaper",
	}
}

// Lacks says what a channel cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Async:
		return "a send has no acknowledgement to wait for"
	case system.Stores:
		return "messages are on the heap"
	case system.Keys, system.Retries:
		return "a channel has no " + string(f)
	}
	return ""
}

// Open makes the channel.
func (System) Open(_ context.Context, o system.Options) (system.Session, error) {
	return &session{queue: make(chan []byte, max(o.Capacity, 1024))}, nil
}

type session struct {
	queue  chan []byte
	timers sync.WaitGroup
}

func (s *session) Publisher() system.Publisher { return publisher{s} }

func (s *session) Consume(_ context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	if o.Concurrency == 0 {
		o.Concurrency = runtime.GOMAXPROCS(0)
	}
	c := &consumer{stop: make(chan struct{})}
	for range o.Concurrency {
		c.running.Go(func() {
			for {
				select {
				case body := <-s.queue:
					_ = h(body) // the ledger has noted what is wrong; a channel cannot retry
				case <-c.stop:
					return
				}
			}
		})
	}
	return c, nil
}

func (s *session) Settled(context.Context) error { return nil }

func (s *session) Usage() (system.Usage, error) { return system.Usage{}, nil }

func (s *session) Close() error {
	s.timers.Wait()
	return nil
}

type publisher struct{ s *session }

func (p publisher) KeepsBodies() bool { return true }

func (p publisher) Publish(_ context.Context, m system.Message) error {
	if m.Delay > 0 {
		p.s.timers.Add(1)
		time.AfterFunc(m.Delay, func() {
			p.s.queue <- m.Body
			p.s.timers.Done()
		})
		return nil
	}
	p.s.queue <- m.Body
	return nil
}

func (p publisher) PublishBatch(_ context.Context, ms []system.Message) error {
	for _, m := range ms {
		p.s.queue <- m.Body
	}
	return nil
}

func (p publisher) PublishAsync(ctx context.Context, m system.Message) error {
	return p.Publish(ctx, m)
}

func (p publisher) Flush(context.Context) error { return nil }

type consumer struct {
	stop    chan struct{}
	running sync.WaitGroup
}

func (c *consumer) Stop(context.Context) error {
	close(c.stop)
	c.running.Wait()
	return nil
}
