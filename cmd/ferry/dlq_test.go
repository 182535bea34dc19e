package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

func deskWithDead(t *testing.T) *desk {
	d := newDesk(t)
	for i := range 3 {
		d.bury(fmt.Sprintf("slow%d", i), driver.Failure{Error: fmt.Sprintf("timeout to billing after %d ms", 100+i), Reason: driver.ReasonTimeout})
	}
	d.bury("bad", driver.Failure{Error: "no such user", Reason: driver.ReasonFatal, Stack: "goroutine 1\nmain.go:1"})
	return d
}

func TestDLQList(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("dlq", "ls"), "No dead letters.")
	d = deskWithDead(t)
	d.has(d.ok("dlq", "ls"), "topic   group    ref", "orders  default  0-1  slow0", "timeout to billing after 100 ms", "no such user")
	d.hasNot(d.ok("dlq", "ls", "orders", "--reason", "fatal"), "timeout")
	d.hasNot(d.ok("dlq", "ls", "orders", "--error", "102 ms"), "slow0", "bad")
	d.has(d.run("dlq", "ls", "--limit", "1").err, "go on with orders --group default --cursor 1")
	d.has(d.ok("dlq", "ls", "orders", "--reason", "none"), "No dead letters.")
	var v []entryView
	if err := json.Unmarshal([]byte(d.ok("dlq", "ls", "--output", "json")), &v); err != nil || len(v) != 4 {
		t.Fatal(err, len(v))
	}
	if dead := v[3].Dead; dead.Reason != driver.ReasonFatal || dead.Action != driver.ActionManualReview || dead.Attempts != 1 || v[3].Group != "default" {
		t.Errorf("%+v", v[3])
	}
}

func TestDLQGroupByError(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	out := d.ok("dlq", "ls", "--group-by", "error")
	d.has(out, "    3  orders  default  timeout  timeout to billing after # ms", "    1  orders  default  fatal    no such user")
	r := d.run("dlq", "ls", "--group-by", "error", "--limit", "1", "--output", "ndjson")
	var v errorView
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.Count != 3 || v.LastDied.Before(*v.FirstDied) {
		t.Errorf("%+v, %v", v, err)
	}
	d.has(r.err, "1 more kinds of errors")
	d.fails(exitUsage, `--group-by "key" does not exist`, "dlq", "ls", "--group-by", "key")
}

func TestDLQShow(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	d.has(d.ok("dlq", "show", "orders", "bad"), "bad  dead in group default", "reason        fatal", "error         no such user", "  stack\n    goroutine 1\n    main.go:1\n",
		"advice        manual_review", "body          body of bad", "attempt 1     ")
	var v entryView
	if err := json.Unmarshal([]byte(d.ok("dlq", "show", "orders", "bad", "--output", "json")), &v); err != nil || v.Dead.Stack == "" {
		t.Errorf("%+v, %v", v, err)
	}
	if out := d.ok("dlq", "show", "orders", "bad", "--raw"); out != "body of bad" {
		t.Errorf("raw %q", out)
	}
	d.ok("pub", "orders", "x", "--id", "alive")
	d.fails(exitFailure, "message alive is ready in group default", "dlq", "show", "orders", "alive")
	d.fails(exitNotFound, `group "other" has no message bad`, "dlq", "show", "orders", "bad", "--group", "other")
}

func TestDLQRetry(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	if out := d.ok("dlq", "retry", "orders", "slow0", "slow1"); out != "retried  slow0  default\nretried  slow1  default\n" {
		t.Errorf("printed %q", out)
	}
	d.ok("dlq", "retry", "orders", "bad", "--body", "mended", "--key", "other")
	if g := d.stats("orders").Groups[0]; g.Ready != 3 || g.Dead != 1 {
		t.Errorf("%+v", g)
	}
	d.has(d.ok("msg", "get", "orders", "bad"), "body          mended", "key           other", "attempt       1, delivery 1")
	d.fails(exitUsage, "no MESSAGE is given", "dlq", "retry", "orders")
	d.fails(exitUsage, "both --all and a MESSAGE", "dlq", "retry", "orders", "x", "--all")
	d.fails(exitUsage, "go with --all", "dlq", "retry", "orders", "x", "--dry-run")
	d.fails(exitUsage, "only one message can be changed", "dlq", "retry", "orders", "--all", "--body", "x")
}

func TestDLQRetryInTheRightGroup(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("group", "create", "orders", "a")
	d.ok("group", "create", "orders", "b")
	d.put(driver.Message{ID: "1", Topic: "orders"})
	d.settle("orders", "a", driver.Dead, &driver.Failure{Error: "no"})
	d.settle("orders", "b", driver.Dead, &driver.Failure{Error: "no"})
	d.has(d.fails(exitUsage, "message 1 is dead in 2 groups", "dlq", "retry", "orders", "1").err, "hint: name one with --group")
	d.ok("dlq", "rm", "orders", "1", "--group", "a", "--yes")
	d.ok("dlq", "retry", "orders", "1")
	if st := d.stats("orders"); st.Groups[0].Cancelled != 1 || st.Groups[1].Ready != 1 {
		t.Errorf("%+v", st.Groups)
	}
}

func TestDLQAll(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	if out := d.ok("dlq", "retry", "orders", "--all", "--reason", "timeout", "--dry-run"); out != "would retry 3 dead letters of topic orders\n" {
		t.Errorf("printed %q", out)
	}
	d.fails(exitUsage, "nobody can be asked: retry 3 dead letters", "dlq", "retry", "orders", "--all", "--reason", "timeout")
	if g := d.stats("orders").Groups[0]; g.Dead != 4 {
		t.Errorf("%+v", g)
	}
	if out := d.ok("dlq", "retry", "orders", "--all", "--reason", "timeout", "--yes"); out != "retried 3 dead letters of topic orders, skipped 0 that were gone by then\n" {
		t.Errorf("printed %q", out)
	}
	if out := d.ok("dlq", "rm", "orders", "--all", "--yes", "--output", "ndjson"); out != `{"topic":"orders","result":"removed","matched":1,"done":1,"skipped":0}`+"\n" {
		t.Errorf("printed %q", out)
	}
	if g := d.stats("orders").Groups[0]; g.Ready != 3 || g.Dead != 0 || g.Cancelled != 1 {
		t.Errorf("%+v", g)
	}
	d.has(d.ok("dlq", "rm", "orders", "--all"), "would remove 0 dead letters") // nothing to ask about
}

// What dies while a bulk retry runs is not part of what was confirmed; what is gone by then is skipped.
func TestBulkTakesExactlyWhatWasCounted(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	d.driver = &busy{Driver: d.memory, meanwhile: func() {
		if err := d.memory.Delete(context.Background(), []driver.Target{{Topic: "orders", Group: "default", ID: "slow0"}})[0]; err != nil {
			t.Error(err)
		}
		late := *d
		late.driver = d.memory
		late.bury("late", driver.Failure{Error: "timeout", Reason: driver.ReasonTimeout})
	}}
	d.has(d.ok("dlq", "retry", "orders", "--all", "--yes"), "retried 3 dead letters of topic orders, skipped 1 that were gone by then")
	d.has(d.ok("dlq", "ls", "orders"), "late")
}

// busy does something just before the first move.
type busy struct {
	driver.Driver
	meanwhile func()
}

func (b *busy) Move(ctx context.Context, ms []driver.Move) []error {
	if b.meanwhile != nil {
		b.meanwhile()
		b.meanwhile = nil
	}
	return b.Driver.Move(ctx, ms)
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("parse-errors", "ls"), "No parse errors")
	rubbish := "\xff\x00 not an envelope \x1b[31m"
	d.ok("pub", "orders", "good", "--id", "good")
	d.ok("msg", "rm", "orders", "good", "--yes")
	d.plant("orders", rubbish)
	d.plant("orders", rubbish+"2")
	out := d.ok("parse-errors", "ls")
	d.has(out, "orders  0-2", `\xff\x00 not an envelope \x1b[31m`)
	d.has(d.ok("topic", "ls"), "has messages that cannot be decoded")
	d.has(d.ok("parse-errors", "show", "orders", "0-2"), "0-2  invalid", "problem   ", `raw           \xff\x00 not an envelope \x1b[31m`)
	if out := d.ok("parse-errors", "show", "orders", "0-2", "--raw"); out != rubbish {
		t.Errorf("raw %q", out)
	}
	d.fails(exitUsage, "the mended body is missing", "parse-errors", "requeue", "orders", "0-2", "--key", "k")
	d.in = strings.NewReader("mended")
	if out := d.ok("parse-errors", "requeue", "orders", "0-2", "--file", "-", "--key", "k"); out != "requeued  0-2\n" {
		t.Errorf("printed %q", out)
	}
	d.has(d.ok("msg", "ls", "orders"), "k", "mended")
	d.fails(exitUsage, "nobody can be asked", "parse-errors", "rm", "orders", "0-4")
	d.ok("parse-errors", "rm", "orders", "0-4", "--yes")
	if st := d.stats("orders"); st.Invalid != 0 {
		t.Errorf("%+v", st)
	}
	d.ok("pub", "orders", "fine", "--id", "fine")
	d.fails(exitFailure, "message fine is ready", "parse-errors", "rm", "orders", "fine", "--yes")
}
