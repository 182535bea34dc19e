package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/wecom/wecomtest"
	"github.com/ferrymq/ferry/worker"
)

// figures are messages in a second.
type figures struct{ in, out float64 }

const (
	accounts = 8
	// perUser is how many messages each user writes: fewer than the limit lets pass at once.
	perUser = 4
	group   = "default"
)

// node is a pipeline with its vendor and its broker.
type node struct {
	broker   *ferry.Broker
	vendor   *wecomtest.Server
	pipeline *wecom.Pipeline
	messages int
}

// measure pulls what the vendor has and then handles it: each alone, so that one tells nothing of the other.
func measure(ctx context.Context, url string, messages int) (f figures, err error) {
	b, err := open.URL(ctx, url, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return f, err
	}
	defer func() { _ = b.Close(context.WithoutCancel(ctx)) }()
	if err := b.Driver().EnsureGroup(ctx, wecom.Topic, group, driver.GroupOptions{}); err != nil {
		return f, err
	}
	n := node{broker: b, vendor: wecomtest.Start(wecomtest.Options{Tokenless: messages}), messages: messages}
	defer n.vendor.Close()
	if n.pipeline, err = wecom.New(b, n.vendor.Config(), wecom.Options{}); err != nil {
		return f, err
	}
	defer n.pipeline.Close()
	for i := range messages {
		n.vendor.Say(account(i), fmt.Sprint("user-", i/perUser), "你好，我的快递到哪了？")
	}
	if f.in, err = n.in(ctx); err != nil {
		return f, err
	}
	f.out, err = n.out(ctx)
	return f, err
}

func account(i int) string { return fmt.Sprint("kf", i/perUser%accounts) }

// in is how many messages are pulled and published in a second.
func (n *node) in(ctx context.Context) (float64, error) {
	for i := range accounts {
		if err := n.pipeline.Pull(ctx, account(i*perUser)); err != nil {
			return 0, err
		}
	}
	return n.rate(ctx, n.pipeline.Run, func() int { return int(n.pipeline.Stats().Messages) })
}

// out is how many messages are handled in a second, behind the guards of customer service, by a handler that does
// nothing.
func (n *node) out(ctx context.Context) (float64, error) {
	layers, err := n.pipeline.Protection(guard.NewMemory(guard.MemoryOptions{}), nil)
	if err != nil {
		return 0, err
	}
	var handled atomic.Int64
	w := worker.New(n.broker, worker.Options{Concurrency: 64})
	n.pipeline.Handle(w, layers, func(context.Context, *ferry.Msg[wecom.Message]) error {
		handled.Add(1)
		return nil
	}, worker.Group(group))
	return n.rate(ctx, w.Run, func() int { return int(handled.Load()) })
}

// rate runs something until it has done all messages, and returns how many it did in a second from the first on:
// joining a group is not part of it.
func (n *node) rate(ctx context.Context, run func(context.Context) error, done func() int) (float64, error) {
	ctx, end := context.WithCancel(ctx)
	var running sync.WaitGroup
	var failed error
	running.Go(func() {
		defer end()
		failed = run(ctx)
	})
	before, began := waitFor(ctx, 1, done)
	all, ended := waitFor(ctx, n.messages, done)
	end()
	running.Wait()
	if failed == nil && all != n.messages {
		failed = fmt.Errorf("%d of %d messages", all, n.messages)
	}
	return float64(all-before) / ended.Sub(began).Seconds(), failed
}

// waitFor returns when so many are done, and how many that are.
func waitFor(ctx context.Context, want int, done func() int) (int, time.Time) {
	for done() < want && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return done(), time.Now()
}
