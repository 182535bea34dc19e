package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
)

func deskWithDead(t *testing.T) *desk {
	d := newDesk(t)
	for i := range 3 {
		d.bury(fmt.Sprintf("slow%d", i), driver.Failure{Error: fmt.Sprintf("timeout to billing after %d ms", 100+i),
			Reason: driver.ReasonTimeout})
	}
	d.bury("bad", driver.Failure{Error: "no such user", Reason: driver.ReasonFatal, Stack: "goroutine 1\nmain.go:1"})
	return d
}

func TestDLQList(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("dlq", "ls"), "No dead letters.")
	d = deskWithDead(t)
	d.has(d.ok("dlq", "ls"), "topic   group    ref", "orders  default  0-1  slow0", "timeout to billing after 100 ms",
		"no such user")
	d.hasNot(d.ok("dlq", "ls", "orders", "--reason", "fatal"), "timeout")
	d.hasNot(d.ok("dlq", "ls", "orders", "--error", "102 ms"), "slow0", "bad")
	more := d.run("dlq", "ls", "--limit", "1").err
	d.has(more, "scanned 1 of about 4, 1 matches; go on with --cursor ")
	_, cursor, _ := strings.Cut(strings.TrimSpace(more), "--cursor ")
	d.hasNot(d.ok("dlq", "ls", "--cursor", cursor), "slow0")
	d.has(d.ok("dlq", "ls", "--cursor", cursor), "slow1", "bad")
	d.has(d.run("dlq", "ls", "--where", `id == "bad"`, "--max-scan", "2").err,
		"scanned 2 of about 4, 0 matches; go on with --cursor ")
	d.has(d.ok("dlq", "ls", "--where", `reason == "fatal" and key == "k"`), "bad")
	d.hasNot(d.ok("dlq", "ls", "--where", `attempts > 1 or error contains "101 ms"`, "--reason", "timeout"), "slow0",
		"slow2", "bad")
	d.fails(exitUsage, `filter "reasn == 1" is broken at column 1`, "dlq", "ls", "--where", "reasn == 1")
	d.fails(exitUsage, `is broken at column 8`, "dlq", "rm", "orders", "--all", "--reason", "timeout", "--where",
		"reason = 1")
	d.has(d.run("dlq", "ls", "--where", `json.a.b == 1`).err, "4 could not be asked, and were left out")
	d.has(d.ok("dlq", "ls", "orders", "--reason", "none"), "No dead letters.")
	d.has(d.run("dlq", "ls", "orders", "--reason", "time_out").err, `reason "time_out" is none of Ferry's own`,
		"timeout, panic")
	var v []entryView
	if err := json.Unmarshal([]byte(d.ok("dlq", "ls", "--output", "json")), &v); err != nil || len(v) != 4 {
		t.Fatal(err, len(v))
	}
	if dead := v[3].Dead; dead.Reason != driver.ReasonFatal || dead.Action != driver.ActionManualReview ||
		dead.Attempts != 1 || v[3].Group != "default" {
		t.Errorf("%+v", v[3])
	}
}

func TestDLQGroupByError(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	out := d.ok("dlq", "ls", "--group-by", "error")
	d.has(out, "    3  orders  default  timeout  timeout to billing after # ms",
		"    1  orders  default  fatal    no such user")
	r := d.run("dlq", "ls", "--group-by", "error", "--limit", "1", "--output", "ndjson")
	var v errorView
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.Count != 3 || v.LastDied.Before(v.FirstDied.Time) {
		t.Errorf("%+v, %v", v, err)
	}
	d.has(r.err, "1 more kinds")
	d.fails(exitUsage, `--group-by "colour" does not exist`, "dlq", "ls", "--group-by", "colour")
	for by, want := range map[string]string{"reason": "    3  timeout", "topic": "    4  orders",
		"group": "    4  orders  default", "key": "    4  k", "day": "    4  20"} {
		d.has(d.ok("dlq", "ls", "orders", "--group-by", by), want)
	}
}

func TestDLQShow(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	d.has(d.ok("dlq", "show", "orders", "bad"), "bad  dead in group default", "reason        fatal",
		"error         no such user", "  stack\n    goroutine 1\n    main.go:1\n",
		"advice        manual_review", "body          body of bad", "attempt 1     ")
	var v entryView
	if err := json.Unmarshal([]byte(d.ok("dlq", "show", "orders", "bad", "--output", "json")), &v); err != nil ||
		v.Dead.Stack == "" {
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
	out := d.ok("dlq", "retry", "orders", "slow0", "slow1")
	if out != "retried  slow0  default\nretried  slow1  default\n" {
		t.Errorf("printed %q", out)
	}
	d.ok("dlq", "retry", "orders", "bad", "--body", "mended", "--key", "other")
	if g := d.stats("orders").Groups[0]; g.Ready != 3 || g.Dead != 1 {
		t.Errorf("%+v", g)
	}
	d.has(d.ok("msg", "show", "orders", "bad"), "body          mended", "key           other",
		"attempt       1, delivery 1")
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
	d.has(d.fails(exitUsage, "message 1 is dead in 2 groups", "dlq", "retry", "orders", "1").err,
		"hint: name one with --group")
	d.ok("dlq", "rm", "orders", "1", "--group", "a", "--yes")
	d.ok("dlq", "retry", "orders", "1")
	if st := d.stats("orders"); st.Groups[0].Cancelled != 1 || st.Groups[1].Ready != 1 {
		t.Errorf("%+v", st.Groups)
	}
}

func TestDLQAll(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	if out := d.ok("dlq", "retry", "orders", "--all", "--reason", "timeout",
		"--dry-run"); out != "would retry 3 dead letters of topic orders\n" {
		t.Errorf("printed %q", out)
	}
	d.fails(exitUsage, "nobody can be asked: retry 3 dead letters", "dlq", "retry", "orders", "--all", "--reason",
		"timeout")
	if g := d.stats("orders").Groups[0]; g.Dead != 4 {
		t.Errorf("%+v", g)
	}
	if out := d.ok("dlq", "retry", "orders", "--all", "--reason", "timeout",
		"--yes"); out != "retried 3 dead letters of topic orders, skipped 0 that were gone by then\n" {
		t.Errorf("printed %q", out)
	}
	if out := d.ok("dlq", "rm", "orders", "--all", "--yes", "--output",
		"ndjson"); out != `{"topic":"orders","result":"removed","matched":1,"done":1,"skipped":0}`+"\n" {
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
	busy := faulty.New(d.memory)
	busy.Set(faulty.Move, faulty.Once(func(context.Context, faulty.Call, func()) error { // just before the first move
		if err := d.memory.Delete(context.Background(),
			[]driver.Target{{Topic: "orders", Group: "default", ID: "slow0"}})[0]; err != nil {
			t.Error(err)
		}
		late := *d
		late.driver = d.memory
		late.bury("late", driver.Failure{Error: "timeout", Reason: driver.ReasonTimeout})
		return nil
	}))
	d.driver = busy
	d.has(d.ok("dlq", "retry", "orders", "--all", "--yes"), "retried 3 dead letters of topic orders, skipped 1 that "+
		"were gone by then")
	d.has(d.ok("dlq", "ls", "orders"), "late")
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
	d.has(d.ok("parse-errors", "show", "orders", "0-2"), "0-2  invalid", "problem   ",
		`raw           \xff\x00 not an envelope \x1b[31m`)
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

func TestDLQEdit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(driver.Message{ID: "1", Topic: "orders", Body: []byte(`{"user":{"id":7}}`)})
	d.settle("orders", "default", driver.Dead, &driver.Failure{Error: "no"})
	d.fails(exitUsage, "nothing is changed", "dlq", "edit", "orders", "1")
	d.fails(exitUsage, `operation 1: "bogus" is none of`, "dlq", "edit", "orders", "1", "--patch",
		`[{"op":"bogus","path":"/a"}]`)
	d.fails(exitUsage, "there is no /customer", "dlq", "edit", "orders", "1", "--patch",
		`[{"op":"remove","path":"/customer"}]`)
	if g := d.stats("orders").Groups[0]; g.Dead != 1 {
		t.Errorf("%+v", g)
	}
	if out := d.ok("dlq", "edit", "orders", "1", "--patch", `[{"op":"replace","path":"/user/id","value":8}]`, "--header",
		"by=me"); out != "edited  1  default\n" {
		t.Errorf("printed %q", out)
	}
	d.has(d.ok("msg", "show", "orders", "1"), `body          {"user":{"id":8}}`, "by=me")
}

func TestDLQMove(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	d.fails(exitUsage, "the topic to move to is missing", "dlq", "move", "orders", "bad")
	d.ok("dlq", "move", "orders", "bad", "--to", "review")
	d.has(d.ok("dlq", "move", "orders", "--all", "--to", "again", "--where", `rounds == 0`, "--dry-run"),
		"would move 3 dead letters of topic orders")
	d.has(d.ok("dlq", "retry", "orders", "--all", "--to", "again", "--rate", "1000", "--yes"),
		"retried 3 dead letters of topic orders, skipped 0")
	if a, b, c := d.stats("orders").Groups[0], d.stats("review").Groups[0], d.stats("again").Groups[0]; a.Dead != 0 ||
		a.Ready != 0 || b.Ready != 1 || c.Ready != 3 {
		t.Errorf("%+v %+v %+v", a, b, c)
	}
	d.has(d.ok("msg", "ls", "review", "--output", "ndjson"), `"ferry-replay-of":"orders/default/bad"`)
}

func TestDLQDryRunSaysWhyNot(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	out := d.ok("dlq", "retry", "orders", "--all", "--patch", `[{"op":"remove","path":"/a"}]`, "--dry-run")
	d.has(out, "would retry 0 dead letters", "4 skipped: the JSON patch does not apply: the body is not JSON")
}

func TestDLQCheckpoint(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	file := filepath.Join(t.TempDir(), "state")
	d.fails(exitUsage, "nobody can be asked", "dlq", "retry", "orders", "--all", "--checkpoint", file)
	d.has(d.ok("dlq", "retry", "orders", "--all", "--checkpoint", file, "--yes"),
		"retried 4 dead letters of topic orders in all, skipped 0")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the checkpoint is left: %v", err)
	}
	for range 4 {
		d.settle("orders", "default", driver.Dead, &driver.Failure{Error: "again"})
	}
	if err := os.WriteFile(file, []byte(`{"newest":"2000-01-01T00:00:00Z","done":4}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := d.run("dlq", "retry", "orders", "--all", "--checkpoint", file) // what died since is not part of it
	d.has(r.out, "retried 4 dead letters of topic orders in all")
	d.has(r.err, "going on after 4")
	if g := d.stats("orders").Groups[0]; g.Dead != 4 {
		t.Errorf("%+v", g)
	}
}

func TestDLQExportAndImport(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	d.put(driver.Message{ID: "formula", Topic: "orders", Body: []byte("=1+1")})
	d.settle("orders", "default", driver.Dead, &driver.Failure{Error: "@oops"})
	r := d.run("dlq", "export", "orders")
	d.has(r.err, "5 dead letters of topic orders written")
	d.has(d.ok("dlq", "export", "--format", "csv", "--where", `id == "formula"`), ",'=1+1,", ",'@oops,")
	file := filepath.Join(t.TempDir(), "saved.ndjson")
	if err := os.WriteFile(file, []byte(r.out), 0o600); err != nil {
		t.Fatal(err)
	}
	d.has(d.ok("dlq", "import", file), "imported 0 dead letters; left out 5 that the broker still has")
	d.has(d.ok("dlq", "import", file, "--dry-run"), "5 dead letters could be imported")
	d.ok("dlq", "rm", "orders", "--all", "--yes")
	d.in = strings.NewReader(r.out)
	d.has(d.ok("dlq", "import", "-", "--to", "again"), "imported 5 dead letters")
	d.has(d.ok("dlq", "import", file, "--to", "again", "--output", "ndjson"),
		`{"lines":5,"published":0,"present":5,"duplicates":0}`)
	if err := os.WriteFile(file, []byte(r.out+"rubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := d.fails(exitUsage, "line 6", "dlq", "import", file, "--to", "third")
	d.has(bad.err, "nothing was imported")
	d.fails(exitUsage, "cannot be read", "dlq", "import", file+".not")
	d.fails(exitNotFound, "third", "topic", "show", "third")
}

func TestDLQExpire(t *testing.T) {
	t.Parallel()
	d := deskWithDead(t)
	d.fails(exitUsage, "no limit is given", "dlq", "expire", "orders")
	d.fails(exitUsage, "nobody can be asked", "dlq", "expire", "orders", "--max-count", "1")
	d.has(d.ok("dlq", "expire", "orders", "--max-count", "1", "--max-age", "24h", "--yes"),
		"removed 3 dead letters of topic orders: 0 by age, 3 by count, 0 by bytes")
	d.has(d.ok("dlq", "ls"), "bad")
}

func TestParseErrorsInBulk(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 4 {
		d.plant("orders", fmt.Sprintf(`{"n":%d}`, i))
	}
	d.has(d.ok("parse-errors", "ls", "--group-by", "error"), "    4  orders")
	d.hasNot(d.ok("parse-errors", "ls", "--where", `json.n > 2`), `{"n":2}`)
	d.has(d.ok("parse-errors", "requeue", "orders", "--all", "--keep-body", "--where", `json.n < 2`, "--dry-run"),
		"would requeue 2 parse errors of topic orders")
	d.has(d.ok("parse-errors", "requeue", "orders", "--all", "--keep-body", "--where", `json.n < 2`, "--yes"),
		"requeued 2 parse errors of topic orders")
	d.has(d.ok("msg", "ls", "orders", "--output", "ndjson"), `"body":"{\"n\":1}","content_type":"application/json"`)
	d.has(d.ok("parse-errors", "move", "orders", "--all", "--where", "json.n == 2", "--to", "mended", "--yes"),
		"moved 1 parse errors")
	export := d.ok("parse-errors", "export")
	d.has(export, `"state":"invalid"`)
	d.has(d.ok("parse-errors", "rm", "orders", "--all", "--yes"), "removed 1 parse errors")
	d.in = strings.NewReader(export)
	d.has(d.ok("parse-errors", "import", "-", "--to", "again"), "imported 1 parse errors")
	d.has(d.ok("msg", "ls", "again"), `{"n":3}`)
}

// An export of what is not there says so, and not that nothing was written.
func TestAnExportOfNothingThatIsThereSaysOnlyThat(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.hasNot(d.fails(exitNotFound, "nope", "dlq", "export", "nope").err, "written")
	d.ok("pub", "orders", "x")
	if r := d.run("dlq", "export", "orders"); r.code != exitOK || r.err != "0 dead letters of topic orders written\n" {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}
