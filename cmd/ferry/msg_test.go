package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ferrymq/ferry/driver"
)

func TestMsgListPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 25 {
		d.put(driver.Message{ID: fmt.Sprintf("m%02d", i), Topic: "orders", Body: []byte("x")})
	}
	var ids []string
	args := []string{"msg", "ls", "orders", "--limit", "10", "--output", "ndjson"}
	cursor := regexp.MustCompile(`--group default --cursor (\S+)\n`)
	for pages := 1; ; pages++ {
		r := d.run(args...)
		for line := range strings.Lines(r.out) {
			var v entryView
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, v.ID)
		}
		next := cursor.FindStringSubmatch(r.err)
		if next == nil {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		args = []string{"msg", "ls", "orders", "--limit", "10", "--output", "ndjson", "--group", "default", "--cursor",
			next[1]}
	}
	if len(ids) != 25 || ids[0] != "m00" || ids[24] != "m24" {
		t.Errorf("%v", ids)
	}
	if n := strings.Count(d.ok("msg", "ls", "orders", "--limit", "0", "--output", "ndjson"), "\n"); n != 25 {
		t.Errorf("%d of all 25", n)
	}
}

// More than one page of the driver, and more than one part of a table.
func TestMsgListOfAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 2500 {
		d.put(driver.Message{ID: fmt.Sprintf("m%04d", i), Topic: "orders"})
	}
	out := d.ok("msg", "ls", "orders", "--limit", "0")
	if rows, heads := strings.Count(out, "  m"), strings.Count(out, "attempt"); rows != 2500 || heads != 3 {
		t.Errorf("%d rows, %d headers", rows, heads)
	}
	var all []entryView
	if err := json.Unmarshal([]byte(d.ok("msg", "ls", "orders", "--limit", "0", "--output", "json")), &all); err != nil ||
		len(all) != 2500 {
		t.Errorf("%d, %v", len(all), err)
	}
}

func TestMsgListOfStatesAndGroups(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("group", "create", "orders", "a")
	d.ok("group", "create", "orders", "b")
	d.put(driver.Message{ID: "now", Topic: "orders", Key: "alice", Body: []byte("世界")})
	d.put(driver.Message{ID: "later", Topic: "orders", Delay: 3600e9})
	d.settle("orders", "b", driver.Retry, &driver.Failure{Error: "no"})
	out := d.ok("msg", "ls", "orders")
	d.has(out, "0-1  now  a      alice  normal          1       世界")
	d.hasNot(out, "later")
	d.has(d.ok("msg", "ls", "orders", "--state", "waiting"), "now", "b ")
	d.has(d.ok("msg", "ls", "orders", "--state", "delayed"), "later")
	d.has(d.ok("msg", "ls", "orders", "--state", "held"), "No messages of topic orders are held.")
	d.fails(exitUsage, `--state "gone" does not exist`, "msg", "ls", "orders", "--state", "gone")
	d.fails(exitUsage, "--limit -1 is negative", "msg", "ls", "orders", "--limit=-1")
	d.fails(exitUsage, "a cursor belongs to one", "msg", "ls", "orders", "--cursor", "1")
	d.fails(exitUsage, "cursor", "msg", "ls", "orders", "--group", "a", "--cursor", "bogus")

	d.put(driver.Message{ID: "more", Topic: "orders"})
	r := d.run("msg", "ls", "orders", "--limit", "2")
	d.has(r.err, "orders --group a is complete, the others are not")
}

// What is done and kept says when it was settled, how long that took, and who did it.
func TestMsgListOfWhatIsDone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("topic", "create", "orders", "--keep", "1h")
	d.put(driver.Message{ID: "one", Topic: "orders", Key: "alice", Body: []byte("x")})
	if err := settleOne(d.driver, "orders", driver.DefaultGroup,
		driver.Settlement{Outcome: driver.Ack, Took: 1500e6}); err != nil {
		t.Fatal(err)
	}
	year := time.Now().Format("2006-")
	d.has(d.ok("msg", "ls", "orders", "--state", "done"), "settled", "took", "by", year, "1.5s  desk  x")
	d.has(d.ok("msg", "show", "orders", "one"), "done in group default", "settled       "+year, "took          1.5s",
		"by            desk")
	d.hasNot(d.ok("msg", "show", "orders", "one"), "held by")
	var all []entryView
	if err := json.Unmarshal([]byte(d.ok("msg", "ls", "orders", "--state", "done", "--output", "json")),
		&all); err != nil || len(all) != 1 ||
		all[0].SettledAt == nil || time.Since(all[0].SettledAt.Time).Abs() > time.Hour ||
		time.Duration(all[0].Took) != 1500*time.Millisecond || all[0].Instance != "desk" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestMsgGet(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("group", "create", "orders", "a")
	d.ok("group", "create", "orders", "b")
	ref := d.put(driver.Message{ID: "one", Topic: "orders", Body: []byte("\x00bytes\xff"),
		Headers: map[string]string{"h": "v"}}).Ref.String()
	d.settle("orders", "b", driver.Retry, &driver.Failure{Error: "it failed", Reason: driver.ReasonTimeout, Duration: 5e6})
	for _, name := range []string{"one", "id:one", ref, "ref:" + ref} {
		d.has(d.ok("msg", "show", "orders", name), "one  ready in group a", "one  waiting in group b",
			`body          \x00bytes\xff`, "headers       h=v", "by desk after 5ms: timeout: it failed")
	}
	if out := d.ok("msg", "show", "orders", "one", "--raw"); out != "\x00bytes\xff" {
		t.Errorf("raw bytes %q", out)
	}
	var views []entryView
	if err := json.Unmarshal([]byte(d.ok("msg", "show", "orders", "one", "--output", "json")), &views); err != nil {
		t.Fatal(err)
	}
	if len(views) != 2 || views[1].History[0].Error != "it failed" || views[1].Attempt != 2 ||
		views[0].ContentType != "" || string(views[0].BodyBase64) != "\x00bytes\xff" {
		t.Errorf("%+v", views)
	}
}

// An id may look like the ref of another message. Then nothing is guessed.
func TestANameThatFitsTwoMessagesIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.put(driver.Message{ID: "0-2", Topic: "orders", Body: []byte("by id")})
	d.put(driver.Message{ID: "other", Topic: "orders", Body: []byte("by ref")})
	if first.Ref.String() != "0-1" {
		t.Fatalf("ref %s", first.Ref)
	}
	d.has(d.fails(exitUsage, `"0-2" is the ref of one message and the id of another`, "msg", "rm", "orders", "0-2",
		"--yes").err, "write ref:0-2 or id:0-2")
	d.has(d.ok("msg", "show", "orders", "id:0-2"), "by id")
	d.has(d.ok("msg", "show", "orders", "ref:0-2"), "by ref")
	d.ok("msg", "rm", "orders", "id:0-2", "--yes")
	d.has(d.ok("msg", "show", "orders", "0-2"), "by ref")
}

func TestMsgRemove(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("group", "create", "orders", "a")
	d.ok("group", "create", "orders", "b")
	for _, id := range []string{"1", "2", "3"} {
		d.put(driver.Message{ID: id, Topic: "orders"})
	}
	d.fails(exitUsage, "nobody can be asked: remove from topic orders: 1, 2", "msg", "rm", "orders", "1", "2")
	d.fails(exitNotFound, `no message "x"`, "msg", "rm", "orders", "1", "x", "--yes") // and 1 stays
	if out := d.ok("msg", "rm", "orders", "1", "--group", "a", "--yes"); out != "removed  1  a\n" {
		t.Errorf("printed %q", out)
	}
	if st := d.stats("orders"); st.Groups[0].Ready != 2 || st.Groups[1].Ready != 3 {
		t.Errorf("%+v", st.Groups)
	}
	if out := d.ok("msg", "rm", "orders", "1", "2", "--yes", "--output",
		"ndjson"); out != "{\"message\":\"1\",\"result\":\"removed\"}\n{\"message\":\"2\",\"result\":\"removed\"}\n" {
		t.Errorf("printed %q", out)
	}
	if st := d.stats("orders"); st.Groups[0].Ready != 1 || st.Groups[1].Ready != 1 {
		t.Errorf("%+v", st.Groups)
	}
}

func TestMsgMove(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(driver.Message{ID: "later", Topic: "orders", Body: []byte("old"), Delay: 3600e9, Key: "k",
		Headers: map[string]string{"a": "1"}})
	d.put(driver.Message{ID: "now", Topic: "orders"})
	d.has(d.fails(exitFailure, "message now is ready in group default", "msg", "move", "orders", "now").err,
		"hint: this works on messages that are delayed or held or waiting or dead")
	d.fails(exitUsage, "--delay -1s is negative", "msg", "move", "orders", "later", "--delay=-1s")
	d.fails(exitUsage, "only one message can be changed", "msg", "move", "orders", "later", "now", "--body", "x")
	d.fails(exitUsage, "both --body and --file", "msg", "move", "orders", "later", "--body", "x", "--file", "y")
	d.fails(exitUsage, "--file cannot be read", "msg", "move", "orders", "later", "--file", "missing")
	d.ok("msg", "move", "orders", "later", "--delay", "2h")
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte(`{"new":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := d.ok("msg", "move", "orders", "later", "--file", file, "--header", "b=2", "--priority",
		"low"); out != "moved  later\n" {
		t.Errorf("printed %q", out)
	}
	got, err := d.driver.Get(t.Context(), driver.Target{Topic: "orders", ID: "later"})
	if err != nil {
		t.Fatal(err)
	}
	e := got[0]
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, e.Headers); diff != "" || e.State != driver.StateReady ||
		string(e.Body) != `{"new":1}` ||
		e.Key != "k" || e.ContentType != "application/json" || e.Priority != driver.Low {
		t.Errorf("%s %+v", diff, e.Message)
	}
}
