package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

var operationID = regexp.MustCompile(`operation ([0-9A-Z]{14}) `)

// submitted returns the id of the operation that a command says it made.
func (d *desk) submitted(out string) string {
	d.Helper()
	m := operationID.FindStringSubmatch(out)
	if m == nil {
		d.Fatalf("no operation in %q", out)
	}
	return m[1]
}

// Messages are removed and rescheduled by a condition: counted, here or in the background; operations are listed,
// shown, watched, done and cancelled.
func TestOperations(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("operation", "ls"), "There are no operations")
	for _, id := range []string{"a1", "a2", "b1"} {
		d.ok("pub", "mails", id, "--id", id, "--key", id[:1], "--delay", "1h")
	}
	d.has(d.ok("msg", "rm", "mails", "--all", "--where", `key == "a"`, "--dry-run"),
		"would remove 2 messages of topic mails")
	d.fails(exitUsage, "nobody can be asked", "msg", "rm", "mails", "--all")
	id := d.submitted(d.ok("msg", "rm", "mails", "--all", "--state", "delayed", "--where", `key == "a"`, "--background",
		"--yes"))
	d.has(d.ok("operation", "ls", "--open"), id, "waiting", "messages.purge")
	d.has(d.ok("operation", "run"), id, "done")
	d.hasNot(d.ok("operation", "ls", "--open"), id)
	d.has(d.ok("operation", "show", id), id, "messages.purge", "done", "taken", "1 times", "2 done")
	d.has(d.ok("operation", "watch", id), "done", "2 done, 0 skipped")
	var v operationView
	if err := json.Unmarshal([]byte(d.ok("operation", "show", id, "--output", "json")), &v); err != nil ||
		v.State != "done" || v.Done != 2 || v.Submitted == nil || v.Ended == nil {
		t.Errorf("%+v %v", v, err)
	}
	d.fails(exitFailure, "is done since", "operation", "cancel", id)
	d.fails(exitNotFound, "there is no operation", "operation", "show", "NOBODY")

	d.has(d.ok("msg", "move", "mails", "--all", "--yes"), "moved 1 messages of topic mails")
	d.has(d.ok("msg", "ls", "mails"), "b1")
	second := d.submitted(d.ok("group", "reset", "mails", "default", "--to", "end", "--background", "--yes"))
	d.has(d.ok("operation", "cancel", second), "operation "+second+" is cancelled")
	d.fails(exitFailure, "is cancelled since", "operation", "cancel", second)
	d.has(d.ok("operation", "run"), second, "cancelled")
	d.has(d.ok("msg", "rm", "mails", "--all", "--group", "default", "--yes"),
		"removed 1 messages of topic mails, skipped 0")
}

// What is wrong is told before anything is opened, and how to mend it.
func TestBadOperations(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "mails", "x")
	for args, want := range map[string]string{
		"msg rm mails":                              "no MESSAGE is given",
		"msg rm mails 0-1 --all":                    "both --all and a MESSAGE",
		"msg rm mails 0-1 --where true":             "go with --all",
		"msg rm mails --all --where key==":          "broken at column",
		"msg rm mails --all --state dead":           "dead",
		"msg move mails --all --state ready":        "ready",
		"msg move mails --all --body x":             "only one message can be changed",
		"dlq rm mails 0-1 --background":             "goes with --all",
		"dlq export mails --background":             "go together",
		"dlq export mails --file x":                 "go together",
		"dlq export mails --background --file ../x": "is not allowed",
		"operation run --export-dir /not/there":     "is no directory",
		"operation show " + strings.Repeat("x", 65): "at most 64",
	} {
		d.fails(exitUsage, want, strings.Fields(args)...)
	}
}

// Letters are removed, expired and retried in the background, and the old words still do.
func TestLettersInTheBackground(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, id := range []string{"m1", "m2", "m3", "m4"} {
		d.bury(id, driver.Failure{Reason: driver.ReasonTimeout, Error: "slow"})
	}
	d.has(d.ok("dlq", "expire", "orders", "--max-count", "3", "--dry-run"), "would remove 1")
	ids := []string{
		d.submitted(d.ok("dlq", "expire", "orders", "--max-count", "3", "--background", "--yes")),
		d.submitted(d.ok("dlq", "rm", "orders", "--all", "--where", `id == "m2"`, "--background", "--yes")),
		d.submitted(d.ok("dlq", "retry", "orders", "--all", "--where", `id == "m3"`, "--background", "--yes")),
	}
	d.has(d.ok("dlq", "jobs", "ls"), ids...)
	d.has(d.ok("dlq", "jobs", "run"), "letters.expire", "letters.remove", "letters.replay", "done")
	left := d.ok("dlq", "ls", "orders")
	d.has(left, "m4")
	d.hasNot(left, "m1", "m2", "m3")
	d.has(d.ok("msg", "ls", "orders"), "m3")
}

// Letters are exported in the background, by whoever was given a directory.
func TestExportInTheBackground(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, id := range []string{"m1", "m2", "m3"} {
		d.bury(id, driver.Failure{Reason: driver.ReasonTimeout, Error: "slow"})
	}
	out := d.ok("dlq", "export", "orders", "--where", `id != "m2"`, "--background", "--file", "saved.ndjson")
	d.has(out, "write 2 dead letters of topic orders to saved.ndjson", "ferry operation run --export-dir DIR")
	id, dir := d.submitted(out), t.TempDir()
	d.has(d.ok("operation", "run"), id, "waiting")
	d.has(d.ok("operation", "run", "--export-dir", dir), id, "done")
	saved, err := os.ReadFile(filepath.Join(dir, "saved.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	d.has(string(saved), `"m1"`, `"m3"`)
	d.hasNot(string(saved), `"m2"`)
}
