package deadletter_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

func removeByFilter(k *kit) {
	k.dead(slow, numbered("s", 130)...)
	k.dead(bad, numbered("b", 3)...)
	sel := deadletter.Selection{Where: k.where(`reason == "timeout"`)}
	r, err := k.queue.Remove(k.ctx(), deadletter.RemoveOptions{Selection: sel, DryRun: true})
	k.ok(err)
	if r.Done != 130 || k.counts(topic).Dead != 133 {
		k.Errorf("dry run: %+v", r)
	}
	deleted := 0
	r, err = k.queue.Remove(k.ctx(), deadletter.RemoveOptions{Selection: sel, Each: func(o deadletter.LetterReport) {
		if o.Result == deadletter.Deleted {
			deleted++
		}
	}})
	k.ok(err)
	if c := k.counts(topic); r.Done != 130 || deleted != 130 || c.Dead != 3 || k.exact() && c.Cancelled != 130 {
		k.Errorf("%+v %+v", r, c)
	}
}

func expireByLimits(k *kit) {
	k.dead(slow, numbered("m", 100)...)
	e, err := k.queue.Expire(k.ctx(), deadletter.Selection{}, deadletter.Retention{})
	k.ok(err)
	if e.Total() != 0 {
		k.Fatalf("nothing was asked for: %+v", e)
	}
	e, err = k.queue.Expire(k.ctx(), deadletter.Selection{}, deadletter.Retention{MaxAge: time.Hour, MaxCount: 60})
	k.ok(err)
	if e != (deadletter.ExpireReport{ByCount: 40}) || k.counts(topic).Dead != 60 {
		k.Errorf("by count: %+v", e)
	}
	// a body and a key of 4 and 1
	e, err = k.queue.Expire(k.ctx(), deadletter.Selection{}, deadletter.Retention{MaxBytes: 5 * 20})
	k.ok(err)
	if e != (deadletter.ExpireReport{ByBytes: 40}) {
		k.Errorf("by bytes: %+v", e)
	}
	if got := k.all(deadletter.Selection{}, 100, 0); !slices.Equal(got, numbered("m", 100)[80:]) {
		k.Errorf("the newest should stay: %v", got)
	}
	e, err = k.queue.Expire(k.ctx(), deadletter.Selection{}, deadletter.Retention{MaxAge: time.Nanosecond})
	k.ok(err)
	if e != (deadletter.ExpireReport{ByAge: 20}) || k.exact() && k.counts(topic).Cancelled != 100 {
		k.Errorf("by age: %+v", e)
	}
}

func exportAndImport(k *kit) {
	k.publish(&driver.Message{ID: "binary", Body: []byte("\xff\x00=1+1"), Key: "k",
		Headers: map[string]string{"h": "\xfe"}, Priority: driver.High},
		&driver.Message{ID: "formula", Body: []byte(`=cmd|' /C calc'!A0`)},
		&driver.Message{ID: "plain", Body: []byte("hello, \"世界\"")})
	k.take(topic, driver.DefaultGroup, 3, func(d *driver.Delivery) driver.Settlement {
		return driver.Settlement{Outcome: driver.Dead, Failure: &driver.Failure{Reason: "own", Error: "+1-800 failed"}}
	})
	var out, table bytes.Buffer
	x, err := k.queue.Export(k.ctx(), &out, deadletter.Selection{}, deadletter.NDJSON)
	k.ok(err)
	if x.Written != 3 || strings.Count(out.String(), "\n") != 3 {
		k.Errorf("%+v %s", x, out.String())
	}
	_, err = k.queue.Export(k.ctx(), &table, deadletter.Selection{}, deadletter.CSV)
	k.ok(err)
	rows, err := csv.NewReader(&table).ReadAll()
	k.ok(err)
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@", rune(cell[0])) {
				k.Errorf("a spreadsheet would run %q", cell)
			}
		}
	}
	if len(rows) != 4 {
		k.Errorf("%d rows", len(rows))
	}
	file := bytes.NewReader(out.Bytes())
	got, err := k.queue.Import(k.ctx(), file, deadletter.ImportOptions{})
	k.ok(err)
	if got != (deadletter.ImportReport{Lines: 3, Present: 3}) {
		k.Errorf("they are all there: %+v", got)
	}
	_, err = k.queue.Remove(k.ctx(), deadletter.RemoveOptions{})
	k.ok(err)
	for _, want := range []deadletter.ImportReport{{Lines: 3, Published: 3}, {Lines: 3, Present: 3}} {
		_, _ = file.Seek(0, 0)
		got, err := k.queue.Import(k.ctx(), file, deadletter.ImportOptions{})
		k.ok(err)
		if got != want {
			k.Errorf("%+v, want %+v", got, want)
		}
	}
	binary := 0
	k.take(topic, driver.DefaultGroup, 3, func(d *driver.Delivery) driver.Settlement {
		if !strings.HasSuffix(d.Headers[deadletter.HeaderReplayOf], "/binary") {
			return driver.Settlement{Outcome: driver.Ack}
		}
		if binary++; string(d.Body) != "\xff\x00=1+1" || d.Headers["h"] != "\xfe" || d.Key != "k" ||
			d.Priority != driver.High {
			k.Errorf("%q %q %v", d.Body, d.Headers, d.Priority)
		}
		return driver.Settlement{Outcome: driver.Ack}
	})
	if binary != 1 {
		k.Errorf("the binary one came %d times", binary)
	}
	_, _ = file.Seek(0, 0)
	got, err = k.queue.Import(k.ctx(), file, deadletter.ImportOptions{})
	k.ok(err)
	if got != (deadletter.ImportReport{Lines: 3, Duplicates: 3}) || k.counts(topic).Ready != 0 {
		k.Errorf("a second import, after they were handled: %+v", got)
	}
	k.ok(k.d.EnsureGroup(k.ctx(), topic, "second", driver.GroupOptions{}))
	_, _ = file.Seek(0, 0)
	if _, err := k.queue.Import(k.ctx(), file, deadletter.ImportOptions{}); !errors.Is(err, driver.ErrConflict) {
		k.Errorf("into two groups: %v", err)
	}
}

func badLineImportsNothing(k *kit) {
	k.ok(k.d.EnsureGroup(k.ctx(), topic, driver.DefaultGroup, driver.GroupOptions{}))
	good := `{"id":"1","topic":"orders","body":"x","state":"dead","group":"default"}`
	for name, line := range map[string]string{"rubbish": "{",
		"unknown field":     `{"id":"2","topic":"orders","state":"dead","colour":"red"}`,
		"alive":             `{"id":"2","topic":"orders","state":"ready"}`,
		"bad topic":         `{"id":"2","topic":"a b","state":"dead"}`,
		"no id":             `{"topic":"orders","state":"dead"}`,
		"priority":          `{"id":"2","topic":"orders","state":"dead","priority":"huge"}`,
		"bad group":         `{"id":"2","topic":"orders","state":"dead","group":"a b"}`,
		"bad ref":           `{"id":"2","topic":"orders","state":"dead","ref":"here"}`,
		"rounds":            `{"id":"2","topic":"orders","state":"dead","dead":{"rounds":9000000000000000}}`,
		"negative rounds":   `{"id":"2","topic":"orders","state":"dead","dead":{"rounds":-1}}`,
		"attempts":          `{"id":"2","topic":"orders","state":"dead","dead":{"attempts":1000001}}`,
		"deliveries":        `{"id":"2","topic":"orders","state":"dead","deliveries":-5}`,
		"long ago":          `{"id":"2","topic":"orders","state":"dead","published_at":"1815-06-18T00:00:00Z"}`,
		"died in future":    `{"id":"2","topic":"orders","state":"dead","dead":{"died_at":"9999-01-01T00:00:00Z"}}`,
		"history in future": `{"id":"2","topic":"orders","state":"dead","history":[{"at":"9999-01-01T00:00:00Z"}]}`,
		"endless attempt":   `{"id":"2","topic":"orders","state":"dead","history":[{"duration":9223372036854775807}]}`,
		"a huge field":      `{"id":"2","topic":"orders","state":"dead","` + strings.Repeat("x", 1<<20) + `":1}`,
		"a huge history":    `{"id":"2","topic":"orders","state":"dead","history":[{}` + strings.Repeat(",{}", 100) + `]}`} {
		_, err := k.queue.Import(k.ctx(), strings.NewReader(good+"\n\n"+line+"\n"+good), deadletter.ImportOptions{})
		if err != nil && len(err.Error()) > 10<<10 {
			k.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
		if err == nil || !strings.Contains(err.Error(), "line 3: ") ||
			!strings.Contains(err.Error(), "nothing was imported") || !errors.Is(err, driver.ErrInvalid) {
			k.Errorf("%s: %v", name, err)
		}
	}
	if c := k.counts(topic); c.Received != 0 {
		k.Errorf("something was imported: %+v", c)
	}
	got, err := k.queue.Import(k.ctx(), strings.NewReader(good+"\n"+good), deadletter.ImportOptions{DryRun: true})
	k.ok(err)
	if got.Lines != 2 || got.Published != 0 {
		k.Errorf("%+v", got)
	}
}

func parseErrors(k *kit) {
	k.planted = true
	k.publish(&driver.Message{ID: "first"})
	for i := range 6 {
		k.ok(k.plant(topic, fmt.Sprintf("rubbish %d", i)))
	}
	for _, key := range []string{"a", "b", "c", "d"} { // in every partition
		k.publish(&driver.Message{ID: "behind " + key, Key: key})
	}
	k.bodies(topic, 5) // who gets the last ones has passed them
	sel := deadletter.Selection{State: driver.StateInvalid}
	if got := sorted(k.all(sel, 4, 0)); !slices.Equal(got,
		[]string{"rubbish 0", "rubbish 1", "rubbish 2", "rubbish 3", "rubbish 4", "rubbish 5"}) {
		k.Fatalf("%q", got)
	}
	t, err := k.queue.Tally(k.ctx(),
		deadletter.TallyQuery{By: deadletter.ByFingerprint, Query: deadletter.Query{Selection: sel}})
	k.ok(err)
	if t.Matched != 6 || t.Total != 6 || len(t.Buckets) == 0 {
		k.Errorf("%+v", t)
	}
	var out bytes.Buffer
	_, err = k.queue.Export(k.ctx(), &out, sel, deadletter.NDJSON)
	k.ok(err)
	some := sel
	some.Where = k.where(`body endsWith "1" or body endsWith "2"`)
	if _, err := k.queue.Replay(k.ctx(), deadletter.ReplayOptions{Selection: some}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("without an edit: %v", err)
	}
	if got := k.replay(deadletter.ReplayOptions{Selection: some, Edit: deadletter.KeepBody()}); got.Done != 2 {
		k.Errorf("%+v", got)
	}
	// without keys: partitions have an order, the topic has none
	if got := sorted(k.bodies(topic, 2)); !slices.Equal(got, []string{"rubbish 1", "rubbish 2"}) {
		k.Errorf("%q", got)
	}
	some.Where = k.where(`body endsWith "3"`)
	if got := k.replay(deadletter.ReplayOptions{Selection: some, Edit: deadletter.SetBody([]byte("mended"), "text/plain"),
		To: "mended"}); got.Done != 1 {
		k.Errorf("%+v", got)
	}
	if got := k.bodies("mended", 1); !slices.Equal(got, []string{"mended"}) {
		k.Errorf("%q", got)
	}
	for age, want := range map[time.Duration]deadletter.ExpireReport{time.Hour: {}, time.Millisecond: {ByAge: 1}} {
		time.Sleep(20 * time.Millisecond) // they become older
		some.Where = k.where(`body endsWith "4" and age < duration("1h")`)
		if got, err := k.queue.Expire(k.ctx(), some, deadletter.Retention{MaxAge: age}); err != nil || got != want {
			k.Errorf("older than %v: %+v, %v", age, got, err)
		}
	}
	if r, err := k.queue.Remove(k.ctx(), deadletter.RemoveOptions{Selection: sel}); err != nil || r.Done != 2 {
		k.Errorf("%+v, %v", r, err)
	}
	if st, err := k.d.Stats(k.ctx(), topic); err != nil || st.Invalid != 0 {
		k.Errorf("%+v, %v", st, err)
	}
	if _, err := k.queue.Import(k.ctx(), bytes.NewReader(out.Bytes()),
		deadletter.ImportOptions{To: "again"}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("parse errors imported without RawBody: %v", err)
	}
	if got, err := k.queue.Import(k.ctx(), bytes.NewReader(out.Bytes()),
		deadletter.ImportOptions{To: "again", RawBody: true}); err != nil || got.Published != 6 {
		k.Errorf("%+v, %v", got, err)
	}
}
