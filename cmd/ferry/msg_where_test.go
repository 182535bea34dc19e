package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Live messages are searched in the language of dead letters: every match is found once, page by page, whatever lies
// between.
func TestMsgSearch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 2500 {
		d.put(driver.Message{ID: fmt.Sprintf("m%04d", i), Topic: "orders", Key: fmt.Sprintf("user-%d", i%100),
			Body: fmt.Appendf(nil, `{"total":%d}`, i)})
	}
	const where = `key == "user-7" and json.total > 100` // 24 of them
	cursor := regexp.MustCompile(`--group default --cursor (\S+)\n`)
	var found []string
	args := []string{"msg", "ls", "orders", "--where", where, "--limit", "10", "--output", "ndjson"}
	for pages := 1; ; pages++ {
		r := d.run(args...)
		for _, id := range regexp.MustCompile(`"id":"(m\d+)"`).FindAllStringSubmatch(r.out, -1) {
			found = append(found, id[1])
		}
		next := cursor.FindStringSubmatch(r.err)
		if next == nil {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
		args = append(args[:9:9], "--group", "default", "--cursor", next[1])
	}
	if len(found) != 24 || found[0] != "m0107" || found[23] != "m2407" {
		t.Errorf("%d found: %v", len(found), found)
	}
	r := d.run("msg", "ls", "orders", "--where", `id == "m2499"`, "--max-scan", "1500")
	d.has(r.err, "looked at 1500", "go on with orders --group default --cursor ")
	d.hasNot(r.out, "m2499")
	d.fails(exitUsage, "column 1", "msg", "ls", "orders", "--where", "nobody == 1")
	d.fails(exitUsage, "--max-scan 0", "msg", "ls", "orders", "--max-scan", "0")
}

// Of a message that waits for a retry its failures can be asked.
func TestMsgSearchOfFailures(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, id := range []string{"a", "b"} {
		d.put(driver.Message{ID: id, Topic: "orders"})
	}
	ctx := t.Context()
	sub, err := d.driver.Subscribe(ctx, driver.SubscribeOptions{Topic: "orders", Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ds, err := sub.Receive(ctx, 2)
	if err != nil || len(ds) != 2 {
		t.Fatal(len(ds), err)
	}
	for i, text := range []string{"billing answered 503", "no route"} {
		failure := &driver.Failure{Reason: driver.ReasonDownstream, Error: text}
		if err := sub.Settle(ctx,
			[]driver.Settlement{{Delivery: ds[i], Outcome: driver.Retry, After: time.Hour, Failure: failure}})[0]; err != nil {
			t.Fatal(err)
		}
	}
	out := d.ok("msg", "ls", "orders", "--state", "waiting", "--where",
		`attempts == 1 and reason == "downstream_error" and error contains "503"`, "--output", "ndjson")
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, `"id":"a"`) {
		t.Errorf("found %s", out)
	}
	if err := sub.Close(ctx); err != nil {
		t.Error(err)
	}
}
