package deadletter_test

import (
	"context"
	"testing"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

// A replay with an edit passes the Publishing hook, a dry run and a plain replay do not: that one keeps its headers.
func TestReplayPassesThePublishingHook(t *testing.T) {
	ctx := context.Background()
	b, err := ferry.New(newMemory(t, memory.Options{}),
		ferry.Options{Hooks: ferry.Hooks{Publishing: func(ctx context.Context, m *ferry.Message) context.Context {
			m.Headers["seen"] += "x"
			return ctx
		}}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(ctx)
	q, err := deadletter.New(b)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := b.Driver().Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Close(ctx) }()
	if _, err := ferry.Publish(ctx, b, topic, 1); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		replay deadletter.ReplayOptions
		seen   string
	}{
		{deadletter.ReplayOptions{}, "x"}, // what the publish left
		{deadletter.ReplayOptions{Edit: deadletter.KeepBody()}, "x"},
		{deadletter.ReplayOptions{}, "xx"},
	} {
		ds, err := sub.Receive(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		if ds[0].Headers["seen"] != step.seen {
			t.Errorf("seen %q, want %q", ds[0].Headers["seen"], step.seen)
		}
		dead := driver.Settlement{Delivery: ds[0], Outcome: driver.Dead, Failure: &driver.Failure{Reason: "fatal"}}
		if errs := sub.Settle(ctx, []driver.Settlement{dead}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		step.replay.Topic = topic
		dry := step.replay
		dry.DryRun = true
		for _, o := range []deadletter.ReplayOptions{dry, step.replay} {
			if _, err := q.Replay(ctx, o); err != nil {
				t.Fatal(err)
			}
		}
	}
}
