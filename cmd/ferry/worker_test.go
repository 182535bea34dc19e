package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// keyWorkers is where scripts keep the workers that joined: *[]*worker.Worker.
const keyWorkers scriptKey = "workers"

// scriptJoins starts a process, as far as the broker can tell, whose handler runs until it is told to stop: joins NAME
// TOPIC
func scriptJoins(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: joins name topic")
	}
	b, err := open.URL(context.Background(), ts.Getenv("FERRY_BROKER"))
	if m, ok := ts.Value(keyMemory).(*memory.Driver); ok {
		b, err = opensKept(m)(context.Background(), "")
	}
	ts.Check(err)
	w := worker.New(b, worker.Options{Concurrency: 4, Instance: args[0], Logger: quiet})
	worker.HandleRaw(w, args[1], func(ctx context.Context, _ *ferry.Delivery) error { <-ctx.Done(); return ctx.Err() })
	m, err := cluster.Join(b, cluster.Options{Name: args[0], Version: "1.2.3", Labels: map[string]string{"zone": "a"},
		Workers: []*worker.Worker{w}})
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = w.Run(ctx) })
	ts.Defer(func() {
		cancel()
		all.Wait()
		_ = b.Close(context.Background())
	})
	<-w.Ready()
	all.Go(func() { _ = m.Run(ctx) })
	joined := ts.Value(keyWorkers).(*[]*worker.Worker)
	*joined = append(*joined, w)
	awaits(ts, func() bool {
		_, err := cluster.Find(ctx, b, args[0])
		return err == nil
	})
}

// scriptRuns waits until a message runs, or until it is settled: runs ID, or ! runs ID
func scriptRuns(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] runs id")
	}
	awaits(ts, func() bool {
		found := false
		for _, w := range *ts.Value(keyWorkers).(*[]*worker.Worker) {
			found = found || slices.ContainsFunc(w.Running(0), func(m worker.RunningMessage) bool { return m.ID == args[0] }) ||
				w.Stats().Consumers[0].Settling > 0
		}
		return found != neg
	})
}

func awaits(ts *testscript.TestScript, done func() bool) {
	for end := time.Now().Add(time.Minute); !done(); {
		if time.Now().After(end) {
			ts.Fatalf("it does not happen")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// What a process holds that has not joined cannot be cancelled, and what has ended neither: both are said.
func TestCancelOfWhatNobodyRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := context.Background()
	b, err := opensKept(d.driver)(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"held", "dead"} {
		if _, err := ferry.Publish(ctx, b, "orders", id, ferry.ID(id)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := d.driver.Subscribe(ctx, driver.SubscribeOptions{Topic: "orders", Instance: "stranger"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(ctx) }()
	ds, err := s.Receive(ctx, 2)
	if err != nil || len(ds) != 2 {
		t.Fatal(len(ds), err)
	}
	if err := errors.Join(s.Settle(ctx, []driver.Settlement{{Delivery: ds[1], Outcome: driver.Dead,
		Failure: &driver.Failure{Reason: "fatal", Error: "broken"}}})...); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"held": "held by stranger, and no process that joined has it",
		"dead": "message dead is dead in group default"} {
		if got := d.run("msg", "cancel", "orders", id, "--yes"); got.code != 1 || !strings.Contains(got.err, want) {
			t.Errorf("%s: exit code %d, %s", id, got.code, got.err)
		}
	}
}
