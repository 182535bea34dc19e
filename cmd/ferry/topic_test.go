package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ferrymq/ferry/driver"
)

func TestTopicList(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("topic", "ls"), "No topics yet. Try: ferry pub hello")
	if out := d.ok("topic", "ls", "--output", "json"); out != "[]\n" {
		t.Errorf("printed %q", out)
	}
	if out := d.ok("topic", "ls", "--output", "ndjson"); out != "" {
		t.Errorf("printed %q", out)
	}
	d.ok("pub", "orders", "a", "b")
	d.ok("pub", "mails", "a", "--delay", "1h")
	out := d.ok("topic", "ls")
	d.has(out, "topic   groups  ready", "orders       1      2", "nobody consumes group default")
	var all []topicView
	if err := json.Unmarshal([]byte(d.ok("topic", "ls", "--output", "json")), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Topic != "mails" || all[0].Delayed != 1 || all[1].Ready != 2 ||
		all[1].Groups[0].Received != 2 {
		t.Errorf("%+v", all)
	}
	if lines := strings.Split(d.ok("topic", "ls", "--output", "ndjson"), "\n"); len(lines) != 3 ||
		!json.Valid([]byte(lines[0])) || !json.Valid([]byte(lines[1])) {
		t.Errorf("%q", lines)
	}
}

func TestTopicCreateAlterShow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	create := []string{"topic", "create", "orders", "--max-messages", "5", "--keep", "1h", "--expired-dead"}
	if out := d.ok(create...); out != "created topic orders\n" {
		t.Errorf("printed %q", out)
	}
	d.ok(create...) // the same again
	d.has(d.fails(exitFailure, "is configured as", "topic", "create", "orders").err,
		"hint: 'ferry topic alter orders' changes settings")
	d.fails(exitUsage, "negative", "topic", "create", "other", "--max-messages=-1")
	d.fails(exitUsage, "there is nothing to change", "topic", "alter", "orders")
	d.ok("topic", "alter", "orders", "--max-bytes", "1000")
	d.ok("pub", "orders", "12345")
	var v topicView
	if err := json.Unmarshal([]byte(d.ok("topic", "show", "orders", "--output", "json")), &v); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&configView{MaxMessages: 5, MaxBytes: 1000, Keep: 3600e9, ExpiredDead: true},
		v.Config); diff != "" {
		t.Error(diff)
	}
	d.has(d.ok("topic", "show", "orders"), "orders  nobody consumes group default", "bound         5 messages, 1000 bytes",
		"keep          settled messages for 1h0m0s",
		"expired       to the dead letters", "published     1 = 1 fanned + 0 delayed", "group    order")
}

func TestTopicPauseAndResume(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "orders", "a")
	if out := d.ok("topic", "pause", "orders"); out != "paused topic orders\n" || !d.stats("orders").Paused {
		t.Errorf("printed %q", out)
	}
	d.has(d.ok("topic", "ls"), "paused")
	d.ok("topic", "pause", "orders", "--group", "default")
	if out := d.ok("topic", "resume", "orders", "--output", "ndjson"); out != `{"topic":"orders","result":"resumed"}`+
		"\n" || d.stats("orders").Paused || !d.stats("orders").Groups[0].Paused {
		t.Errorf("printed %q", out)
	}
	d.has(d.ok("topic", "ls"), "group default is paused")
	if out := d.ok("topic", "resume", "orders", "--group", "default"); out != "resumed topic orders group default\n" ||
		d.stats("orders").Groups[0].Paused {
		t.Errorf("printed %q", out)
	}
}

func TestTopicPurgeAndDelete(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.bury("dead", driver.Failure{Error: "no"})
	d.ok("pub", "orders", "a", "b")
	d.ok("pub", "orders", "c", "--delay", "1h")
	d.has(d.fails(exitUsage, "nobody can be asked: purge 3 entries of topic orders", "topic", "purge", "orders").err,
		"hint: add --yes if you mean it")
	if out := d.ok("topic", "purge", "orders", "--group", "default",
		"--yes"); out != "purged 2 entries of topic orders group default\n" {
		t.Errorf("printed %q", out)
	}
	if out := d.ok("topic", "purge", "orders", "--yes"); out != "purged 1 entries of topic orders\n" {
		t.Errorf("printed %q", out)
	}
	d.fails(exitUsage, "remove topic orders with 0 unsettled messages, 1 dead letters, 0 parse errors and groups: default",
		"topic", "rm", "orders")
	if out := d.ok("topic", "rm", "orders", "--yes"); out != "removed topic orders\n" {
		t.Errorf("printed %q", out)
	}
	d.fails(exitNotFound, "orders", "topic", "show", "orders")
}

func TestGroups(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("topic", "create", "orders", "--keep", "1h")
	d.has(d.ok("group", "ls", "orders"), "Topic orders has no groups yet")
	if out := d.ok("group", "create", "orders", "billing", "--order",
		"relaxed"); out != "created topic orders group billing\n" {
		t.Errorf("printed %q", out)
	}
	d.ok("pub", "orders", "x")
	d.has(d.ok("group", "ls", "orders"), "group    order", "billing  relaxed          0         1")
	d.ok("group", "create", "orders", "audit", "--start", "begin")
	d.ok("group", "create", "orders", "late", "--start", "2026-01-02 15:04")
	d.fails(exitUsage, `--order "loose" does not exist`, "group", "create", "orders", "g", "--order", "loose")
	d.fails(exitUsage, `--start "soon" is neither`, "group", "create", "orders", "g", "--start", "soon")
	d.fails(exitFailure, "order", "group", "create", "orders", "billing")
	d.fails(exitUsage, "remove group billing of topic orders with 1 unsettled messages and 0 dead letters", "group", "rm",
		"orders", "billing")
	if out := d.ok("group", "rm", "orders", "billing", "--yes"); out != "removed topic orders group billing\n" {
		t.Errorf("printed %q", out)
	}
	d.hasNot(d.ok("group", "ls", "orders"), "billing")
}

// A number of partitions is refused where there are none, instead of being shown as if there were.
func TestPartitionsAreRefusedWhereThereAreNone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.fails(exitFailure, "memory has no partitions", "topic", "create", "orders", "--partitions", "4")
	if topics, _ := d.driver.Topics(t.Context()); len(topics) > 0 {
		t.Error("something was written")
	}
	d.ok("topic", "create", "orders")
	d.fails(exitFailure, "memory has no partitions", "topic", "alter", "orders", "--partitions", "4")
	d.ok("topic", "alter", "orders", "--keep", "1h")
	d.has(d.ok("topic", "alter", "orders", "--keep-most", "10"), "altered topic orders")
}
