package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/google/go-cmp/cmp"
)

func TestDurability(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level    driver.Durability
		text     string
		replicas int
	}{
		{0, "default", 0}, {driver.InMemory, "memory", 0}, {driver.Written, "written", 0}, {driver.Synced, "synced", 0},
		{driver.Replicated(1), "replicated(1)", 1}, {driver.Replicated(3), "replicated(3)", 3},
		{4, "invalid", 0}, {driver.Replicated(0), "invalid", 0}, {driver.Replicated(70000), "invalid", 0},
	} {
		if c.level.String() != c.text || c.level.Replicas() != c.replicas {
			t.Errorf("level %d is %q with %d replicas, want %q with %d", uint16(c.level), c.level, c.level.Replicas(),
				c.text, c.replicas)
		}
	}
	if !slices.IsSorted([]driver.Durability{driver.InMemory, driver.Written, driver.Synced, driver.Replicated(1),
		driver.Replicated(2)}) {
		t.Error("the levels are not in order")
	}
	c := driver.Capabilities{Levels: []driver.Durability{driver.Written, driver.Replicated(1)}}
	for level, want := range map[driver.Durability]bool{0: true, driver.Written: true, driver.Replicated(1): true,
		driver.InMemory: false, driver.Synced: false, driver.Replicated(2): false} {
		if c.Gives(level) != want {
			t.Errorf("Gives(%v) = %v", level, !want)
		}
	}
}

func TestErrorHasKindCauseAndHint(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("around: %w", driver.NewError(driver.ErrFull, "the topic is full", "wait", context.DeadlineExceeded))
	if !errors.Is(err, driver.ErrFull) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrInvalid) {
		t.Errorf("%v does not match its kind and its cause, and nothing else", err)
	}
	var e *driver.Error
	if !errors.As(err, &e) || e.Hint != "wait" {
		t.Errorf("As found %+v", e)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{e, "ferry: the topic is full: context deadline exceeded (hint: wait)"},
		{driver.NewError(driver.ErrFull, "full", "", nil), "ferry: full"},
		{driver.NewError(driver.ErrFull, "full", "wait", nil), "ferry: full (hint: wait)"},
	} {
		if c.err.Error() != c.want || !errors.Is(c.err, driver.ErrFull) {
			t.Errorf("%q, want %q of kind full", c.err, c.want)
		}
	}
}

func TestNamesOfNumbers(t *testing.T) {
	t.Parallel()
	for got, want := range map[fmt.Stringer]string{
		driver.Low: "low", driver.Normal: "normal", driver.High: "high", driver.Urgent: "urgent",
		driver.Priority(3): "invalid",
		driver.CauseFirst:  "first", driver.CauseFailover: "failover", driver.Cause(7): "cause(7)",
		driver.Ack: "ack", driver.Drop: "drop", driver.Outcome(5): "outcome(5)",
		driver.Strict: "strict", driver.Relaxed: "relaxed",
	} {
		if got.String() != want {
			t.Errorf("%T %d is %q, want %q", got, got, got, want)
		}
	}
	if driver.Low.Lane() != 0 || driver.Urgent.Lane() != 3 {
		t.Error("lanes are not 0 to 3")
	}
}

func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	message := func() *driver.Message {
		return &driver.Message{ID: "a", Body: []byte("body"), Headers: map[string]string{"k": "v"},
			Retry: &driver.RetryPolicy{Delays: []time.Duration{1, 2}}}
	}
	m := message()
	c := m.Clone()
	if d := cmp.Diff(m, c); d != "" {
		t.Fatalf("the copy differs:\n%s", d)
	}
	c.Body[0], c.Headers["k"], c.Retry.Delays[0], c.Retry.Base = 'x', "x", 9, 9
	if d := cmp.Diff(message(), m); d != "" {
		t.Errorf("changing the copy changed the message:\n%s", d)
	}
}
