package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/open"
)

var realOpen opener = open.URL

// bodies returns the bodies of a topic in one state, in order.
func (d *desk) bodies(topic string, state driver.State) []string {
	d.Helper()
	q := driver.Query{Topic: topic, State: state}
	if !ofTopic(state) {
		q.Group = "default"
	}
	page, err := d.driver.Browse(context.Background(), q)
	if err != nil {
		d.Fatal(err)
	}
	all := []string{}
	for _, e := range page.Entries {
		all = append(all, string(e.Body))
	}
	return all
}

func TestPubArguments(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	out := d.ok("pub", "orders", `{"id":1,"name":"世界"}`, "--id", "one", "--key", "alice", "--priority", "high", "--header",
		"tenant=a", "--header", "x=y=z",
		"--ttl", "24h", "--dedup", "d1", "--max-attempts", "3", "--delay", "10s")
	if out != "one  orders  delivers in 10s\n" {
		t.Errorf("printed %q", out)
	}
	got, err := d.driver.Get(t.Context(), driver.Target{Topic: "orders", ID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	m := got[0].Message
	m.PublishedAt = time.Time{}
	want := &driver.Message{ID: "one", Topic: "orders", Key: "alice", Body: []byte(`{"id":1,"name":"世界"}`),
		ContentType: "application/json",
		Headers:     map[string]string{"tenant": "a", "x": "y=z"}, Priority: driver.High, MaxAttempts: 3}
	m.OwnID, m.TTL, m.Delay, m.DedupID, m.DedupWindow = false, 0, 0, "", 0 // not kept by every driver
	if diff := cmp.Diff(want, m); diff != "" {
		t.Error(diff)
	}
	if until := time.Until(got[0].ExpiresAt); until < 23*time.Hour || until > 24*time.Hour {
		t.Errorf("it expires in %v", until)
	}
	d.has(d.ok("pub", "orders", "again", "--dedup", "d1"), "one  orders  was there already")

	d.ok("pub", "orders", "a", "b", "c")
	d.in = strings.NewReader("from\x00stdin")
	d.has(d.ok("pub", "orders", "-", "--at", "2020-01-02 15:04"), "orders  due now, its time is past")
	if diff := cmp.Diff([]string{"a", "b", "c", "from\x00stdin"}, d.bodies("orders", driver.StateReady)); diff != "" {
		t.Error(diff)
	}
	var v receiptView
	if err := json.Unmarshal([]byte(d.ok("pub", "orders", "x", "--output", "ndjson")), &v); err != nil || v.ID == "" ||
		v.Ref == "" || v.Topic != "orders" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestPubMistakes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"there is nothing to publish", []string{}},
		{"both --ndjson and a BODY", []string{"x", "--ndjson"}},
		{"--id names one message", []string{"x", "y", "--id", "1"}},
		{"--id names one message", []string{"--ndjson", "--id", "1"}},
		{"--batch 0 is out of range", []string{"x", "--batch", "0"}},
		{`priority "top" does not exist`, []string{"x", "--priority", "top"}},
		{`--header "x" is not of the form`, []string{"x", "--header", "x"}},
		{`"tomorrow" is not a time`, []string{"x", "--at", "tomorrow"}},
		{"TTL -1s is negative", []string{"x", "--ttl", "-1s"}},
		{"both a delay and a schedule", []string{"x", "--delay", "1s", "--at", "2030-01-02 15:04"}},
		{"dedup window", []string{"x", "--dedup", "d", "--dedup-window", "1000h"}},
		{"--dedup-window is given without --dedup", []string{"x", "--dedup-window", "5s"}},
		{"--delay -5s is negative", []string{"x", "--delay", "-5s"}},
		{`key "a\nb" contains control characters`, []string{"x", "--key", "a\nb"}},
	} {
		d.fails(exitUsage, c.want, append([]string{"pub", "orders"}, c.args...)...)
	}
	d.fails(exitFailure, "exceeds the limit", "pub", "orders", "fine", strings.Repeat("x", 5<<20))
	if topics, _ := d.driver.Topics(t.Context()); len(topics) > 0 {
		t.Error("something was published")
	}
}

func TestPubLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.in = strings.NewReader(`{"id":"1","key":null,"body":"text","body_base64":null,"headers":{"b":"2"}}

{"id":"2","body":{"a": [1, 2]},"key":"own","priority":"urgent","content_type":"application/x+json"}
{"id":"3","body":null,"body_base64":"AP8=","delay":"1h","ttl":"2h","dedup":"x","dedup_window":"5m","max_attempts":2}
{"id":"4","body":""}
{"id":"1","body":"a duplicate"}`)
	out := d.ok("pub", "orders", "--ndjson", "--key", "flag", "--header", "a=1", "--batch", "2")
	if out != "published 5 messages to orders; 1 of them were there already\n" {
		t.Errorf("printed %q", out)
	}
	for id, want := range map[string]driver.Message{
		"1": {Key: "flag", Body: []byte("text"), ContentType: "application/octet-stream",
			Headers: map[string]string{"a": "1", "b": "2"}},
		"2": {Key: "own", Body: []byte(`{"a": [1, 2]}`), ContentType: "application/x+json",
			Headers: map[string]string{"a": "1"}, Priority: driver.Urgent},
		"3": {Key: "flag", Body: []byte("\x00\xff"), ContentType: "application/octet-stream",
			Headers: map[string]string{"a": "1"}, MaxAttempts: 2},
		"4": {Key: "flag", ContentType: "application/octet-stream", Headers: map[string]string{"a": "1"}},
	} {
		got, err := d.driver.Get(t.Context(), driver.Target{Topic: "orders", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		m := got[0].Message
		have := driver.Message{Key: m.Key, Body: m.Body, ContentType: m.ContentType, Headers: m.Headers, Priority: m.Priority,
			MaxAttempts: m.MaxAttempts}
		if len(have.Body) == 0 {
			have.Body = nil
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("message %s: %s", id, diff)
		}
		if delayed := got[0].State == driver.StateDelayed; delayed != (id == "3") {
			t.Errorf("message %s is %s", id, got[0].State)
		}
	}
}

// A bad line is named, and so is everything that is published and that is not.
func TestPubNamesTheBadLine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"body":"x","prioriy":"high"}`:     `line 4: it is not a message: json: unknown field "prioriy"`,
		`not JSON \x1b`:                     "line 4: it is not a message",
		`{"body":"x"} {"body":"y"}`:         "line 4: there is something behind the message",
		`{"key":"x"}`:                       "line 4: it has no body",
		`{"body":null}`:                     "line 4: it has no body",
		`{"body":"x","body_base64":"eA=="}`: "line 4: it has both body and body_base64",
		`{"body":"x","delay":"soon"}`:       `line 4: its delay "soon" is not a duration`,
		`{"body":"x","at":"soon"}`:          `line 4: "soon" is not a time`,
		`{"body":"x","priority":"top"}`:     `line 4: priority "top" does not exist`,
		`{"body":"x","ttl":"-1s"}`:          "line 4: TTL -1s is negative",
		`{"body":"x","delay":"-1s"}`:        "line 4: its delay -1s is negative",
		`{"body":"x","dedup_window":"1m"}`:  "line 4: it has a dedup_window and no dedup",
		`["body"]`:                          "line 4: it is not a message",
	} {
		d := newDesk(t)
		d.in = strings.NewReader("{\"body\":\"1\"}\n{\"body\":\"2\"}\n{\"body\":\"3\"}\n" + line + "\n{\"body\":\"5\"}\n")
		r := d.fails(exitUsage, want, "pub", "orders", "--ndjson", "--batch", "2")
		d.has(r.err, "published 2 messages, all up to line 2; nothing from line 3 on\n")
		if diff := cmp.Diff([]string{"1", "2"}, d.bodies("orders", driver.StateReady)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestPubSaysHowMuchOfARefusedBatchIsStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("topic", "create", "orders", "--max-messages", "3")
	var in strings.Builder
	for i := range 8 {
		fmt.Fprintf(&in, "{\"body\":\"%d\"}\n", i)
	}
	d.in = strings.NewReader(in.String())
	r := d.fails(exitFailure, "line 4: ", "pub", "orders", "--ndjson", "--batch", "2")
	d.has(r.err, "published 3 messages, all up to line 2; of lines 3 to 4, 1 are published, 1 are not, and of 0 nobody "+
		"knows; nothing after them\n", "reached its bound")
}

// What trickles in is published as it comes, not when a batch is full; and an interrupt ends the wait for more.
func TestPubDoesNotHoldBackWhatTrickles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	published := make(chan string, 10)
	in, feed := io.Pipe()
	defer func() { _ = feed.Close() }() // lets the abandoned read end
	d.in = in
	watched := faulty.New(d.memory)
	watched.Set(faulty.Publish, func(_ context.Context, c faulty.Call, do func()) error {
		do()
		for _, m := range c.Messages {
			published <- string(m.Body)
		}
		return nil
	})
	d.driver = watched
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan done)
	go func() { ended <- d.runUntil(ctx, "pub", "orders", "--ndjson") }()
	for _, body := range []string{"first", "second"} {
		if _, err := fmt.Fprintf(feed, "{\"body\":%q}\n", body); err != nil {
			t.Fatal(err)
		}
		if got := <-published; got != body {
			t.Errorf("published %q, want %q", got, body)
		}
	}
	interrupt()
	r := <-ended
	if r.code != exitFailure {
		t.Errorf("exit code %d", r.code)
	}
	d.has(r.err, "published 2 messages, all up to line 2; nothing from line 3 on", "error: interrupted")
}

// A publish whose outcome is unknown is counted as such.
func TestPubCountsTheUnknown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	unsure := faulty.New(d.memory)
	unsure.Set(faulty.Publish,
		faulty.Fail(driver.NewError(ferry.ErrUnknown, "the line went dead", "publish again with an id", nil)))
	d.driver = unsure
	d.in = strings.NewReader("{\"body\":\"1\"}\n{\"body\":\"2\"}\n")
	r := d.fails(exitFailure, "line 1: the line went dead", "pub", "orders", "--ndjson")
	d.has(r.err, "published 0 messages; of lines 1 to 2, 0 are published, 0 are not, and of 2 nobody knows")
}

func TestBar(t *testing.T) {
	t.Parallel()
	for done, want := range map[int64]string{
		0: "[..............................]   0 %  ", 50: "[###############...............]  50 %  ",
		100: "[##############################] 100 %  ", 120: "[##############################] 100 %  ",
	} {
		if got := bar(done, 100); got != want {
			t.Errorf("bar(%d) = %q", done, got)
		}
	}
	if bar(5, 0) != "" {
		t.Error("a bar without a total")
	}
}

func FuzzParseLine(f *testing.F) {
	for _, s := range []string{`{"body":"x"}`, `{"body":{"a":1},"headers":{"a":"b"},"delay":"1s"}`,
		`{"body_base64":"eA==","at":"2026-01-02 15:04"}`, `[`, `{"body":null}`} {
		f.Add([]byte(s))
	}
	template := &driver.Message{Topic: "orders", DedupWindow: time.Minute}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := parseLine(template, line)
		if (m == nil) && err == nil {
			t.Error("neither a message nor an error")
		}
		if template.Headers != nil || template.Body != nil {
			t.Error("the template was changed")
		}
	})
}
