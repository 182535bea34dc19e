package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
)

func TestSubLooksAndGivesBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "orders", "a", "b", "c", "--key", "k")
	for range 2 { // the second look finds the same
		r := d.run("sub", "orders", "--count", "2")
		lines := strings.Split(strings.TrimSpace(r.out), "\n")
		if r.code != exitOK || len(lines) != 2 || !strings.HasSuffix(lines[0], "k             a") ||
			!strings.HasSuffix(lines[1], "k             b") {
			t.Errorf("exit code %d, printed %q", r.code, r.out)
		}
		d.has(r.err, "2 messages, given back")
	}
	g := d.stats("orders").Groups[0]
	if g.Ready != 3 || g.Acked != 0 || g.Consumers != 0 || g.Redelivered != 0 {
		t.Errorf("%+v", g)
	}
}

func TestSubConsumes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(driver.Message{ID: "1", Topic: "orders", Key: "k", Body: []byte("\xff"), Headers: map[string]string{"h": "v"}})
	d.ok("pub", "orders", "b", "c")
	var got []map[string]any
	if err := json.Unmarshal([]byte(d.ok("sub", "orders", "--ack", "--count", "2", "--output", "json")),
		&got); err != nil {
		t.Fatal(err)
	}
	delete(got[0], "published_at")
	want := map[string]any{"id": "1", "topic": "orders", "key": "k", "body_base64": "/w==",
		"headers": map[string]any{"h": "v"}, "priority": "normal",
		"ref": "0-1", "group": "default", "attempt": 1.0, "deliveries": 1.0, "cause": "first"}
	if diff := cmp.Diff(want, got[0]); diff != "" || len(got) != 2 {
		t.Errorf("%d messages, the first: %s", len(got), diff)
	}
	if g := d.stats("orders").Groups[0]; g.Ready != 1 || g.Acked != 2 {
		t.Errorf("%+v", g)
	}
}

func TestSubMistakes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.fails(exitUsage, "both --ack and --leave", "sub", "orders", "--ack", "--leave")
	d.fails(exitUsage, "--count -1 is negative", "sub", "orders", "--count=-1")
	d.fails(exitUsage, "more than can be held", "sub", "orders", "--count", "1001")
}

// A group is created only if that is said, and its order is followed.
func TestSubCreatesAGroup(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx, interrupt := context.WithCancel(t.Context())
	d.driver = joining{d.memory, interrupt}
	r := d.runUntil(ctx, "sub", "orders", "--group", "debug", "--create")
	if r.code != exitOK {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
	d.has(r.err, "ferry group rm orders debug", "0 messages, given back")
	d.driver = d.memory
	d.ok("group", "create", "orders", "loose", "--order", "relaxed")
	d.ok("pub", "orders", "x")
	d.has(d.ok("sub", "orders", "--group", "loose", "--count", "1"), "x")
}

// joining calls a function when somebody has joined a group.
type joining struct {
	driver.Driver
	joined func()
}

func (j joining) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	defer j.joined()
	return j.Driver.Subscribe(ctx, o)
}

// Held messages stay held however long it takes, and go back when it is interrupted.
func TestSubHoldsUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemory(t, memory.Options{})
		defer func() { _ = b.Close(context.Background()) }()
		d := &desk{T: t, driver: b, memory: b}
		d.put(driver.Message{ID: "1", Topic: "orders", Body: []byte("x")})
		r := &remote{process: process{out: io.Discard, err: io.Discard}, format: formatNDJSON}
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- subOptions{group: "default"}.receive(ctx, session{remote: r, driver: b}, "orders")
		}()
		time.Sleep(5 * time.Minute) // many leases
		for i := range 60 {         // and others keep coming, so that it never waits for long
			d.put(driver.Message{ID: fmt.Sprint("more", i), Topic: "orders"})
			time.Sleep(time.Second)
		}
		if g := d.stats("orders").Groups[0]; g.Inflight != 61 || g.Redelivered != 0 {
			t.Errorf("while it is held: %+v", g)
		}
		interrupt()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if g := d.stats("orders").Groups[0]; g.Ready != 61 || g.Redelivered != 0 || g.Consumers != 0 {
			t.Errorf("after the interrupt: %+v", g)
		}
	})
}

// What could not be printed is not acknowledged.
func TestSubAcknowledgesOnlyWhatItPrinted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "orders", "x")
	r := &remote{process: process{out: broken{}, err: io.Discard}, format: formatTable}
	err := subOptions{group: "default", ack: true, count: 1}.receive(t.Context(), session{remote: r, driver: d.driver},
		"orders")
	if !errors.Is(err, errPipe) {
		t.Errorf("got %v", err)
	}
	if g := d.stats("orders").Groups[0]; g.Ready != 1 || g.Acked != 0 {
		t.Errorf("%+v", g)
	}
}

var errPipe = errors.New("broken pipe")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errPipe }

// A lease that ran out while the output was stuck is told, and is not an error.
func TestSubTellsLostLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemory(t, memory.Options{})
		defer func() { _ = b.Close(context.Background()) }()
		d := &desk{T: t, driver: b, memory: b}
		d.put(driver.Message{ID: "1", Topic: "orders", Body: []byte("x")})
		var notes strings.Builder
		r := &remote{process: process{out: slow{}, err: &notes}, format: formatTable}
		if err := (subOptions{group: "default", ack: true, count: 1}).receive(t.Context(), session{remote: r, driver: b},
			"orders"); err != nil {
			t.Error(err)
		}
		d.has(notes.String(), "1 of them were held too long")
	})
}

type slow struct{}

func (slow) Write(b []byte) (int, error) {
	time.Sleep(time.Minute)
	return len(b), nil
}
