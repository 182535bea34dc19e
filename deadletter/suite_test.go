package deadletter_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// cases is the suite: each runs on every broker, which is empty.
var cases = []struct {
	name string
	run  func(k *kit)
}{
	{"browse goes through everything once", browseGoesThroughEverythingOnce},
	{"browse is bounded and says how far it is", browseIsBounded},
	{"tally counts by everything", tallyCounts},
	{"replay by filter, dry run first", replayByFilter},
	{"replay keeps the order of a key", replayKeepsOrder},
	{"replay edits and patches", replayEdits},
	{"replay to another topic", replayToAnotherTopic},
	{"two replays at once double nothing", twoReplaysAtOnce},
	{"a replay is cancelled and resumed", replayIsResumed},
	{"a replay in parts leaves alone what died again", replayInParts},
	{"remove by filter", removeByFilter},
	{"expire by age, count and bytes", expireByLimits},
	{"export and import", exportAndImport},
	{"a bad line imports nothing", badLineImportsNothing},
	{"parse errors have the same operations", parseErrors},
	{"one runner works at a time", oneRunnerWorks},
	{"a new version brings panics back", deployBringsPanicsBack},
}

func TestOffice(t *testing.T) {
	t.Parallel()
	for _, b := range backends(t) {
		for _, c := range cases {
			t.Run(b.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				broker, plant := b.open(t)
				k := newKit(t, broker)
				k.plant = plant
				c.run(k)
				if !k.planted {
					k.audit()
				}
			})
		}
	}
}

// audit demands that nothing is lost or counted twice.
func (k *kit) audit() {
	k.Helper()
	topics, err := k.d.Topics(k.ctx())
	k.ok(err)
	for _, info := range topics {
		r, err := k.d.Audit(k.ctx(), info.Topic, false)
		k.ok(err)
		if len(r.Problems) > 0 || len(r.Stats.Unbalanced()) > 0 {
			k.Errorf("topic %s: %v %v", info.Topic, r.Problems, r.Stats.Unbalanced())
		}
	}
}

func browseGoesThroughEverythingOnce(k *kit) {
	for _, g := range []string{"a", "b"} {
		k.ok(k.d.EnsureGroup(k.ctx(), topic, g, driver.GroupOptions{}))
	}
	k.ok(k.d.EnsureGroup(k.ctx(), "other", driver.DefaultGroup, driver.GroupOptions{}))
	var want []string
	for i := range 60 {
		k.publish(&driver.Message{ID: fmt.Sprint("m", i), Body: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	for i := range 10 {
		k.publish(&driver.Message{ID: fmt.Sprint("x", i), Topic: "other"})
	}
	die := func(d *driver.Delivery) driver.Settlement {
		return driver.Settlement{Outcome: driver.Dead, Failure: &driver.Failure{Reason: "r"}}
	}
	for _, p := range [][2]string{{topic, "a"}, {topic, "b"}, {"other", driver.DefaultGroup}} {
		n := map[string]int{topic: 60, "other": 10}[p[0]]
		k.take(p[0], p[1], n, die)
	}
	// Names are in order: orders before other.
	for range 2 {
		want = append(want, ids("m", 60)...)
	}
	want = append(want, ids("x", 10)...)
	for _, page := range [][2]int{{1000, 0}, {7, 0}, {7, 3}, {1, 1}} {
		if got := k.all(deadletter.Selection{}, page[0], page[1]); !slices.Equal(sorted(got), sorted(want)) {
			k.Errorf("pages of %v: %d letters, want %d: %v", page, len(got), len(want), got)
		}
	}
	sel := deadletter.Selection{Topic: topic, Group: "b", Where: k.where(`json.n % 7 == 3`)}
	for _, page := range [][2]int{{1000, 0}, {2, 0}, {1, 5}} {
		if got := k.all(sel, page[0], page[1]); !slices.Equal(sorted(got), sorted([]string{"m3", "m10", "m17", "m24", "m31", "m38", "m45", "m52", "m59"})) {
			k.Errorf("filtered pages of %v: %v", page, got)
		}
	}
	if _, err := k.office.Browse(k.ctx(), deadletter.Query{Selection: deadletter.Selection{Topic: topic, Group: "nope"}}); !errors.Is(err, driver.ErrNotFound) {
		k.Errorf("unknown group: %v", err)
	}
	if _, err := k.office.Browse(k.ctx(), deadletter.Query{Cursor: "rubbish"}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("rubbish as a cursor: %v", err)
	}
}

func ids(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(prefix, i)
	}
	return all
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func browseIsBounded(k *kit) {
	k.dead(slow, numbered("m", 300)...)
	q := deadletter.Query{Selection: deadletter.Selection{Topic: topic, Where: k.where(`id == "m299"`)}, MaxScan: 100, MaxTime: time.Minute}
	for _, want := range []int{100, 200, 300} {
		p, err := k.office.Browse(k.ctx(), q)
		k.ok(err)
		if p.Scanned != want || p.Total != 300 || len(p.Letters) != want/300 {
			k.Errorf("scanned %d of %d, found %d; want %d", p.Scanned, p.Total, len(p.Letters), want)
		}
		q.Cursor = p.Next
	}
	q.Cursor, q.Where = "", k.where(`json.x.y == 1`)
	p, err := k.office.Browse(k.ctx(), q)
	k.ok(err)
	if p.Faulty != 100 || p.Fault == nil {
		k.Errorf("%d letters that cannot be asked, %v", p.Faulty, p.Fault)
	}
}

func tallyCounts(k *kit) {
	k.dead(slow, numbered("s", 30)...)
	k.dead(driver.Failure{Reason: driver.ReasonTimeout, Error: "timeout after 8 ms"}, numbered("t", 5)...)
	k.dead(bad, numbered("b", 7)...)
	for _, c := range []struct {
		by   deadletter.By
		want []int
	}{{deadletter.ByFingerprint, []int{35, 7}}, {deadletter.ByReason, []int{35, 7}}, {deadletter.ByTopic, []int{42}}, {deadletter.ByGroup, []int{42}}, {deadletter.ByKey, []int{42}}} {
		for _, scan := range []int{0, 10} {
			var t deadletter.Tally
			q := deadletter.TallyQuery{Query: deadletter.Query{MaxScan: scan, MaxTime: time.Minute}, By: c.by}
			for {
				part, err := k.office.Tally(k.ctx(), q)
				k.ok(err)
				t.Add(part)
				if q.Cursor = part.Next; q.Cursor == "" {
					break
				}
			}
			var got []int
			for _, b := range t.Buckets {
				got = append(got, b.Count)
			}
			if !slices.Equal(got, c.want) || t.Matched != 42 || t.Scanned != 42 || t.Total != 42 {
				k.Errorf("by %s: %v of %+v, want %v", c.by, got, t, c.want)
			}
		}
	}
	t, err := k.office.Tally(k.ctx(), deadletter.TallyQuery{By: deadletter.ByDay, Query: deadletter.Query{Selection: deadletter.Selection{Where: k.where(`reason == "fatal"`)}}})
	k.ok(err)
	if len(t.Buckets) == 0 || len(t.Buckets) > 2 || t.Matched != 7 || t.Buckets[0].Day == "" {
		k.Errorf("by day: %+v", t)
	}
	if _, err := k.office.Tally(k.ctx(), deadletter.TallyQuery{By: "colour"}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("by colour: %v", err)
	}
}

func replayByFilter(k *kit) {
	k.dead(slow, numbered("s", 12)...)
	k.dead(bad, numbered("b", 3)...)
	r := deadletter.Replay{Selection: deadletter.Selection{Topic: topic, Where: k.where(`reason == "timeout" and attempts >= 1`)}, DryRun: true}
	if got := k.replay(r); got.Done != 12 || got.Skipped != 0 || got.Phase != deadletter.Done {
		k.Errorf("dry run: %+v", got)
	}
	if c := k.counts(topic); c.Dead != 15 || c.Ready != 0 {
		k.Errorf("the dry run changed something: %+v", c)
	}
	var outcomes []deadletter.Outcome
	r.DryRun, r.Each = false, func(o deadletter.Outcome) { outcomes = append(outcomes, o) }
	if got := k.replay(r); got.Done != 12 || got.Total != 15 || len(outcomes) != 12 || outcomes[0].ID != "s000" || outcomes[0].Result != deadletter.Replayed {
		k.Errorf("%+v %+v", got, outcomes)
	}
	if c := k.counts(topic); c.Dead != 3 || c.Ready != 12 {
		k.Errorf("%+v", c)
	}
	k.bury(12, slow) // again
	r.MaxRounds = 1
	if got := k.replay(r); got.Done != 0 || got.Skipped != 12 || got.Why["it was replayed too often already"] != 12 {
		k.Errorf("rounds: %+v", got)
	}
	p, err := k.office.Browse(k.ctx(), deadletter.Query{Selection: r.Selection})
	k.ok(err)
	if p.Letters[0].Dead.Rounds != 1 {
		k.Errorf("a letter that died again has %d rounds", p.Letters[0].Dead.Rounds)
	}
	one := deadletter.Replay{Selection: deadletter.Selection{Only: []driver.Target{p.Letters[5].Target(), {Topic: topic, Group: driver.DefaultGroup, ID: "nothing"}}}}
	if got := k.replay(one); got.Done != 1 || got.Skipped != 1 {
		k.Errorf("named: %+v", got)
	}
}

// replayKeepsOrder: what died in another order than it was published, because some came back in between, returns in
// the order of publishing.
func replayKeepsOrder(k *kit) {
	var want []string
	for i := range 20 {
		for _, key := range []string{"a", "b", "c"} {
			id := fmt.Sprintf("%s%02d", key, i)
			k.publish(&driver.Message{ID: id, Key: key, Body: []byte(id)})
			want = append(want, id)
		}
	}
	k.bury(60, slow)
	for _, where := range []string{`id in ["a03","a00","b07","c11"]`, `id in ["a01","b01"]`} {
		if got := k.replay(deadletter.Replay{Selection: deadletter.Selection{Where: k.where(where)}}); got.Done == 0 {
			k.Fatalf("%+v", got)
		}
		k.bury(int(k.counts(topic).Ready), slow)
	}
	if got := k.replay(deadletter.Replay{}); got.Done != 60 {
		k.Fatalf("%+v", got)
	}
	perKey := func(all []string) map[byte][]string {
		m := map[byte][]string{}
		for _, id := range all {
			m[id[0]] = append(m[id[0]], id)
		}
		return m
	}
	got, wanted := perKey(k.bodies(topic, 60)), perKey(want)
	for key := range wanted {
		if !slices.Equal(got[key], wanted[key]) {
			k.Errorf("key %c: %v", key, got[key])
		}
	}
}

func replayEdits(k *kit) {
	k.publish(&driver.Message{ID: "json", Body: []byte(`{"user":{"id":7}}`), Headers: map[string]string{"old": "1"}, ContentType: "application/json"}, &driver.Message{ID: "text", Body: []byte("oops")})
	k.bury(2, bad)
	patch, err := deadletter.ParsePatch([]byte(`[{"op":"replace","path":"/user/id","value":8}]`))
	k.ok(err)
	r := deadletter.Replay{Edit: deadletter.Edits(deadletter.PatchBody(patch), deadletter.SetHeader("by", "operator"), deadletter.RemoveHeader("old")), DryRun: true}
	if got := k.replay(r); got.Done != 1 || got.Skipped != 1 {
		k.Errorf("dry run: %+v", got)
	}
	r.DryRun = false
	if got := k.replay(r); got.Done != 1 || got.Skipped != 1 || len(got.Why) != 1 {
		k.Errorf("%+v", got)
	}
	k.take(topic, driver.DefaultGroup, 1, func(d *driver.Delivery) driver.Settlement {
		if string(d.Body) != `{"user":{"id":8}}` || d.Headers["by"] != "operator" || d.Headers["old"] != "" || d.ID != "json" || d.Cause != driver.CauseReplay {
			k.Errorf("%s %v %v", d.Body, d.Headers, d.Cause)
		}
		return driver.Settlement{Outcome: driver.Ack}
	})
	if got := k.all(deadletter.Selection{}, 10, 0); !slices.Equal(got, []string{"text"}) {
		k.Errorf("left: %v", got)
	}
}

func replayToAnotherTopic(k *kit) {
	k.ok(k.d.EnsureGroup(k.ctx(), "rescue", driver.DefaultGroup, driver.GroupOptions{}))
	k.dead(slow, numbered("m", 25)...)
	// Killed after the publish and before the delete: the copy is there already, and the letter too.
	half := &dyingBeforeDelete{Driver: k.d}
	crashed := newKit(k.T, broker(k.T, shared{half}))
	if _, err := crashed.office.Replay(k.ctx(), deadletter.Replay{To: "rescue"}); err == nil {
		k.Fatal("the delete did not fail")
	}
	if c := k.counts("rescue"); c.Ready != 25 || k.counts(topic).Dead != 25 {
		k.Fatalf("%+v", c)
	}
	if got := k.replay(deadletter.Replay{To: "rescue"}); got.Done != 25 {
		k.Errorf("%+v", got)
	}
	if c := k.counts(topic); c.Dead != 0 || c.Ready != 0 || k.counts("rescue").Ready != 25 {
		k.Errorf("%+v %+v", c, k.counts("rescue"))
	}
	k.take("rescue", driver.DefaultGroup, 25, func(d *driver.Delivery) driver.Settlement {
		if d.Headers[deadletter.HeaderReplayOf] != topic+"/default/"+string(d.Body) || d.Headers[deadletter.HeaderRounds] != "1" {
			k.Errorf("%v", d.Headers)
		}
		return driver.Settlement{Outcome: driver.Ack}
	})
	if _, err := k.office.Replay(k.ctx(), deadletter.Replay{Selection: deadletter.Selection{Topic: topic}, To: topic}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("to where they are: %v", err)
	}
}

// shared is a driver that a second broker does not close.
type shared struct{ driver.Driver }

func (shared) Close(context.Context) error { return nil }

type dyingBeforeDelete struct{ driver.Driver }

func (d *dyingBeforeDelete) Delete(_ context.Context, ts []driver.Target) []error {
	errs := make([]error, len(ts))
	for i := range errs {
		errs[i] = driver.ErrNotApplied
	}
	return errs
}

func twoReplaysAtOnce(k *kit) {
	k.dead(slow, numbered("m", 200)...)
	var all sync.WaitGroup
	reports, errs := make([]deadletter.Report, 4), make([]error, 4)
	for i := range reports {
		all.Go(func() { reports[i], errs[i] = k.office.Replay(k.ctx(), deadletter.Replay{}) })
	}
	all.Wait()
	k.ok(errors.Join(errs...))
	done := 0
	for _, r := range reports {
		done += r.Done
	}
	if c := k.counts(topic); done != 200 || c.Ready != 200 || c.Dead != 0 {
		k.Errorf("%d replayed, %+v", done, c)
	}
	if got := k.bodies(topic, 200); len(got) != 200 || len(slices.Compact(sorted(got))) != 200 {
		k.Errorf("%d messages", len(got))
	}
}

func replayIsResumed(k *kit) {
	k.dead(slow, numbered("m", 250)...)
	half := make(chan struct{})
	n := 0
	op, err := k.office.Start(k.ctx(), deadletter.Replay{Each: func(deadletter.Outcome) {
		if n++; n == 150 {
			close(half)
		}
		if n >= 150 {
			<-half
		}
	}})
	k.ok(err)
	<-half
	op.Cancel()
	report, err := op.Wait()
	if !errors.Is(err, context.Canceled) && err != nil {
		k.Fatal(err)
	}
	if report.Done < 150 || report.Checkpoint.Done != report.Done {
		k.Fatalf("%+v", report)
	}
	again := min(report.Done, 40)
	k.take(topic, driver.DefaultGroup, again, func(*driver.Delivery) driver.Settlement { // some die again before it goes on
		return driver.Settlement{Outcome: driver.Dead, Failure: &driver.Failure{Reason: driver.ReasonTimeout}}
	})
	rest, err := k.office.Replay(k.ctx(), deadletter.Replay{Checkpoint: &report.Checkpoint})
	k.ok(err)
	if rest.Done != 250-report.Done || rest.Checkpoint.Done != 250 {
		k.Errorf("%d before, then %+v", report.Done, rest)
	}
	if c := k.counts(topic); c.Dead != int64(again) || c.Ready != int64(250-again) {
		k.Errorf("%+v", c)
	}
}

func replayInParts(k *kit) {
	k.dead(slow, numbered("m", 100)...)
	seen := map[string]int{}
	var sub driver.Subscription
	report, err := k.office.Replay(k.ctx(), deadletter.Replay{MaxPlan: 30, Each: func(o deadletter.Outcome) {
		seen[o.ID]++
		var err error
		if sub == nil {
			sub, err = k.d.Subscribe(k.ctx(), driver.SubscribeOptions{Topic: topic, Instance: "again"})
			k.ok(err)
		}
		if len(seen)%10 != 0 { // some die again while the replay goes on
			return
		}
		ds, err := sub.Receive(k.ctx(), 1)
		k.ok(err)
		k.ok(errors.Join(sub.Settle(k.ctx(), []driver.Settlement{{Delivery: ds[0], Outcome: driver.Dead, Failure: &driver.Failure{Reason: driver.ReasonTimeout}}})...))
	}})
	k.ok(err)
	k.ok(sub.Close(k.ctx()))
	if report.Done != 100 || len(seen) != 100 {
		k.Errorf("%+v, %d different", report, len(seen))
	}
	if c := k.counts(topic); c.Dead != 10 || c.Ready != 90 {
		k.Errorf("%+v", c)
	}
}

func removeByFilter(k *kit) {
	k.dead(slow, numbered("s", 130)...)
	k.dead(bad, numbered("b", 3)...)
	sel := deadletter.Selection{Where: k.where(`reason == "timeout"`)}
	r, err := k.office.Remove(k.ctx(), deadletter.Removal{Selection: sel, DryRun: true})
	k.ok(err)
	if r.Done != 130 || k.counts(topic).Dead != 133 {
		k.Errorf("dry run: %+v", r)
	}
	deleted := 0
	r, err = k.office.Remove(k.ctx(), deadletter.Removal{Selection: sel, Each: func(o deadletter.Outcome) {
		if o.Result == deadletter.Deleted {
			deleted++
		}
	}})
	k.ok(err)
	if c := k.counts(topic); r.Done != 130 || deleted != 130 || c.Dead != 3 || c.Cancelled != 130 {
		k.Errorf("%+v %+v", r, c)
	}
}

func expireByLimits(k *kit) {
	k.dead(slow, numbered("m", 100)...)
	e, err := k.office.Expire(k.ctx(), deadletter.Selection{}, deadletter.Retention{})
	k.ok(err)
	if e.Total() != 0 {
		k.Fatalf("nothing was asked for: %+v", e)
	}
	e, err = k.office.Expire(k.ctx(), deadletter.Selection{}, deadletter.Retention{MaxAge: time.Hour, MaxCount: 60})
	k.ok(err)
	if e != (deadletter.Expiry{ByCount: 40}) || k.counts(topic).Dead != 60 {
		k.Errorf("by count: %+v", e)
	}
	e, err = k.office.Expire(k.ctx(), deadletter.Selection{}, deadletter.Retention{MaxBytes: 5 * 20}) // a body and a key of 4 and 1
	k.ok(err)
	if e != (deadletter.Expiry{ByBytes: 40}) {
		k.Errorf("by bytes: %+v", e)
	}
	if got := k.all(deadletter.Selection{}, 100, 0); !slices.Equal(got, numbered("m", 100)[80:]) {
		k.Errorf("the newest should stay: %v", got)
	}
	e, err = k.office.Expire(k.ctx(), deadletter.Selection{}, deadletter.Retention{MaxAge: time.Nanosecond})
	k.ok(err)
	if e != (deadletter.Expiry{ByAge: 20}) || k.counts(topic).Cancelled != 100 {
		k.Errorf("by age: %+v", e)
	}
}

func exportAndImport(k *kit) {
	k.publish(&driver.Message{ID: "binary", Body: []byte("\xff\x00=1+1"), Key: "k", Headers: map[string]string{"h": "\xfe"}, Priority: driver.High},
		&driver.Message{ID: "formula", Body: []byte(`=cmd|' /C calc'!A0`)}, &driver.Message{ID: "plain", Body: []byte("hello, \"世界\"")})
	k.take(topic, driver.DefaultGroup, 3, func(d *driver.Delivery) driver.Settlement {
		return driver.Settlement{Outcome: driver.Dead, Failure: &driver.Failure{Reason: "own", Error: "+1-800 failed"}}
	})
	var out, table bytes.Buffer
	x, err := k.office.Export(k.ctx(), &out, deadletter.Selection{}, deadletter.NDJSON)
	k.ok(err)
	if x.Written != 3 || strings.Count(out.String(), "\n") != 3 {
		k.Errorf("%+v %s", x, out.String())
	}
	_, err = k.office.Export(k.ctx(), &table, deadletter.Selection{}, deadletter.CSV)
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
	got, err := k.office.Import(k.ctx(), file, deadletter.Import{})
	k.ok(err)
	if got != (deadletter.Imported{Lines: 3, Present: 3}) {
		k.Errorf("they are all there: %+v", got)
	}
	_, err = k.office.Remove(k.ctx(), deadletter.Removal{})
	k.ok(err)
	for _, want := range []deadletter.Imported{{Lines: 3, Published: 3}, {Lines: 3, Present: 3}} {
		_, _ = file.Seek(0, 0)
		got, err := k.office.Import(k.ctx(), file, deadletter.Import{})
		k.ok(err)
		if got != want {
			k.Errorf("%+v, want %+v", got, want)
		}
	}
	k.take(topic, driver.DefaultGroup, 3, func(d *driver.Delivery) driver.Settlement {
		if strings.HasSuffix(d.Headers[deadletter.HeaderReplayOf], "/binary") && (string(d.Body) != "\xff\x00=1+1" || d.Headers["h"] != "\xfe" || d.Key != "k" || d.Priority != driver.High) {
			k.Errorf("%q %q %v", d.Body, d.Headers, d.Priority)
		}
		return driver.Settlement{Outcome: driver.Ack}
	})
	_, _ = file.Seek(0, 0)
	got, err = k.office.Import(k.ctx(), file, deadletter.Import{})
	k.ok(err)
	if got != (deadletter.Imported{Lines: 3, Duplicates: 3}) || k.counts(topic).Ready != 0 {
		k.Errorf("a second import, after they were handled: %+v", got)
	}
	k.ok(k.d.EnsureGroup(k.ctx(), topic, "second", driver.GroupOptions{}))
	_, _ = file.Seek(0, 0)
	if _, err := k.office.Import(k.ctx(), file, deadletter.Import{}); !errors.Is(err, driver.ErrConflict) {
		k.Errorf("into two groups: %v", err)
	}
}

func badLineImportsNothing(k *kit) {
	k.ok(k.d.EnsureGroup(k.ctx(), topic, driver.DefaultGroup, driver.GroupOptions{}))
	good := `{"id":"1","topic":"orders","body":"x","state":"dead","group":"default"}`
	for name, line := range map[string]string{"rubbish": "{", "unknown field": `{"id":"2","topic":"orders","state":"dead","colour":"red"}`,
		"alive": `{"id":"2","topic":"orders","state":"ready"}`, "bad topic": `{"id":"2","topic":"a b","state":"dead"}`, "no id": `{"topic":"orders","state":"dead"}`,
		"priority": `{"id":"2","topic":"orders","state":"dead","priority":"huge"}`} {
		_, err := k.office.Import(k.ctx(), strings.NewReader(good+"\n\n"+line+"\n"+good), deadletter.Import{})
		if err == nil || !strings.Contains(err.Error(), "line 3: ") || !strings.Contains(err.Error(), "nothing was imported") || !errors.Is(err, driver.ErrInvalid) {
			k.Errorf("%s: %v", name, err)
		}
	}
	if c := k.counts(topic); c.Received != 0 {
		k.Errorf("something was imported: %+v", c)
	}
	got, err := k.office.Import(k.ctx(), strings.NewReader(good+"\n"+good), deadletter.Import{DryRun: true})
	k.ok(err)
	if got.Lines != 2 || got.Published != 0 {
		k.Errorf("%+v", got)
	}
}

func parseErrors(k *kit) {
	if k.plant == nil {
		k.Skip("nothing can be planted into this broker")
	}
	k.planted = true
	k.publish(&driver.Message{ID: "first"})
	for i := range 6 {
		k.ok(k.plant(topic, fmt.Sprintf("rubbish %d", i)))
	}
	k.publish(&driver.Message{ID: "behind"})
	k.bodies(topic, 2) // who gets the last one has passed them
	sel := deadletter.Selection{State: driver.StateInvalid}
	if got := k.all(sel, 4, 0); !slices.Equal(got, []string{"rubbish 0", "rubbish 1", "rubbish 2", "rubbish 3", "rubbish 4", "rubbish 5"}) {
		k.Fatalf("%q", got)
	}
	t, err := k.office.Tally(k.ctx(), deadletter.TallyQuery{By: deadletter.ByFingerprint, Query: deadletter.Query{Selection: sel}})
	k.ok(err)
	if t.Matched != 6 || t.Total != 6 || len(t.Buckets) == 0 {
		k.Errorf("%+v", t)
	}
	var out bytes.Buffer
	_, err = k.office.Export(k.ctx(), &out, sel, deadletter.NDJSON)
	k.ok(err)
	some := sel
	some.Where = k.where(`body endsWith "1" or body endsWith "2"`)
	if _, err := k.office.Replay(k.ctx(), deadletter.Replay{Selection: some}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("without an edit: %v", err)
	}
	if got := k.replay(deadletter.Replay{Selection: some, Edit: deadletter.KeepBody()}); got.Done != 2 {
		k.Errorf("%+v", got)
	}
	if got := k.bodies(topic, 2); !slices.Equal(got, []string{"rubbish 1", "rubbish 2"}) {
		k.Errorf("%q", got)
	}
	some.Where = k.where(`body endsWith "3"`)
	if got := k.replay(deadletter.Replay{Selection: some, Edit: deadletter.SetBody([]byte("mended"), "text/plain"), To: "mended"}); got.Done != 1 {
		k.Errorf("%+v", got)
	}
	if got := k.bodies("mended", 1); !slices.Equal(got, []string{"mended"}) {
		k.Errorf("%q", got)
	}
	if r, err := k.office.Remove(k.ctx(), deadletter.Removal{Selection: sel}); err != nil || r.Done != 3 {
		k.Errorf("%+v, %v", r, err)
	}
	if st, err := k.d.Stats(k.ctx(), topic); err != nil || st.Invalid != 0 {
		k.Errorf("%+v, %v", st, err)
	}
	if _, err := k.office.Import(k.ctx(), bytes.NewReader(out.Bytes()), deadletter.Import{To: "again"}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("parse errors imported without RawBody: %v", err)
	}
	if got, err := k.office.Import(k.ctx(), bytes.NewReader(out.Bytes()), deadletter.Import{To: "again", RawBody: true}); err != nil || got.Published != 6 {
		k.Errorf("%+v, %v", got, err)
	}
}

// oneRunnerWorks: of two runners one holds the lease, and the other takes over when it stops.
func oneRunnerWorks(k *kit) {
	k.dead(driver.Failure{Reason: "now", Error: "x"}, numbered("m", 20)...)
	options := deadletter.RunnerOptions{Interval: 20 * time.Millisecond, Strategies: []deadletter.Strategy{{Name: "now", Reasons: []driver.Reason{"now"}, MaxRounds: 1000}}}
	type running struct {
		r    *deadletter.Runner
		stop context.CancelFunc
		done chan error
	}
	start := func() running {
		r, err := deadletter.NewRunner(k.office, options)
		k.ok(err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		return running{r, cancel, done}
	}
	a, b := start(), start()
	until := func(what string, ok func() bool) {
		k.Helper()
		for deadline := time.Now().Add(30 * time.Second); !ok(); {
			if time.Now().After(deadline) {
				k.Fatalf("%s: %+v %+v", what, a.r.Stats(), b.r.Stats())
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	until("nobody works", func() bool { return a.r.Stats().Recovered+b.r.Stats().Recovered == 20 })
	sa, sb := a.r.Stats(), b.r.Stats()
	if sa.Leading == sb.Leading || sa.Recovered+sb.Recovered != 20 || min(sa.Recovered, sb.Recovered) != 0 {
		k.Errorf("%+v %+v", sa, sb)
	}
	if sb.Leading {
		a, b = b, a
	}
	a.stop()
	k.ok(<-a.done)
	until("the other does not take over", func() bool { return b.r.Stats().Leading })
	k.bury(20, driver.Failure{Reason: "now", Error: "x"})
	until("the other does not work", func() bool { return k.counts(topic).Ready == 20 })
	b.stop()
	k.ok(<-b.done)
	if got := k.bodies(topic, 20); len(slices.Compact(sorted(got))) != 20 {
		k.Errorf("%v", got)
	}
}

func deployBringsPanicsBack(k *kit) {
	k.dead(driver.Failure{Reason: driver.ReasonPanic, Error: "nil"}, "m1")
	once := func(version string) deadletter.RunnerStats {
		r, err := deadletter.NewRunner(k.office, deadletter.RunnerOptions{Version: version})
		k.ok(err)
		k.ok(r.Once(k.ctx()))
		return r.Stats()
	}
	// The first version that is seen may be the one it died under, or not: it came later, so it counts as new.
	if s := once("v1"); s.Recovered != 1 {
		k.Fatalf("%+v", s)
	}
	time.Sleep(5 * time.Millisecond) // the clock of the backend counts in milliseconds
	k.bury(1, driver.Failure{Reason: driver.ReasonPanic, Error: "nil"})
	time.Sleep(5 * time.Millisecond)
	if s := once("v1"); s.Recovered != 0 || s.Blocked != 1 || s.DiedAgain != 1 {
		k.Errorf("the same version: %+v", s)
	}
	if s := once("v2"); s.Recovered != 1 {
		k.Errorf("a new version: %+v", s)
	}
	time.Sleep(5 * time.Millisecond)
	k.bury(1, driver.Failure{Reason: driver.ReasonPanic, Error: "nil"})
	time.Sleep(5 * time.Millisecond)
	if s := once("v1"); s.Recovered != 1 {
		k.Errorf("back to the old version, which is a deploy too: %+v", s)
	}
}
