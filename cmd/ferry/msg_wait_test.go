package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

// The result of a message is printed as soon as it is there; what has none says why.
func TestMsgWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b, err := opensKept(d.driver)(t.Context(), "", ferry.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	keep, err := result.Keep(b, result.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(b, worker.Options{Logger: quiet, StopTimeout: time.Millisecond})
	worker.HandleRaw(w, "reports", func(ctx context.Context, m *ferry.Delivery) error {
		switch m.ID {
		case "bad":
			return worker.Fatal(errors.New("no such customer"))
		case "gone":
			return worker.Drop(errors.New("out of date"))
		case "bytes":
			return result.Return(ctx, []byte{0xff, 0xfe})
		case "slow":
			result.Progress(ctx, 1, 2, "rows")
			<-ctx.Done()
			return ctx.Err()
		}
		return result.Return(ctx, map[string]int{"total": 42})
	}, worker.Use(keep))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	<-w.Ready()
	for _, id := range []string{"good", "bad", "gone", "bytes", "slow"} {
		d.put(driver.Message{ID: id, Topic: "reports", Body: []byte("x")})
	}
	if out := d.ok("msg", "wait", "reports", "default", "good"); out != "{\"total\":42}\n" {
		t.Errorf("it prints %q", out)
	}
	for _, want := range []string{`"state": "done"`, `"attempt": 1`, `"body": "{\"total\":42}"`,
		`"content_type": "application/json"`, `"at": "`} {
		if out := d.ok("msg", "wait", "reports", "default", "good", "--output", "json"); !strings.Contains(out, want) {
			t.Errorf("the JSON has no %s:\n%s", want, out)
		}
	}
	d.fails(exitFailure, "the message failed at attempt 1: no such customer", "msg", "wait", "reports", "default", "bad")
	if r := d.run("msg", "wait", "reports", "default", "bad", "--output", "json"); r.code != exitFailure ||
		!strings.Contains(r.out, `"error": "no such customer"`) {
		t.Errorf("%+v", r)
	}
	d.fails(exitFailure, "the message was cancelled or dropped: out of date", "msg", "wait", "reports", "default", "gone")
	out := d.ok("msg", "wait", "reports", "default", "bytes")
	if out != "done, with 2 bytes that are no text: use --raw\n" {
		t.Errorf("it prints %q", out)
	}
	if out := d.ok("msg", "wait", "reports", "default", "bytes", "--raw"); out != "\xff\xfe" {
		t.Errorf("it prints %q", out)
	}
	d.fails(exitFailure, "has not ended: it is running", "msg", "wait", "reports", "default", "slow", "--timeout", "1s")
	if out := d.ok("msg", "wait", "reports", "default", "slow", "--timeout", "0"); out != "running, 1 of 2 rows\n" {
		t.Errorf("it prints %q", out)
	}
	d.fails(exitNotFound, "neither a result nor the message", "msg", "wait", "reports", "default", "other", "--timeout",
		"0")
	d.fails(exitUsage, "--timeout -1s is negative", "msg", "wait", "reports", "default", "good", "--timeout", "-1s")
}
