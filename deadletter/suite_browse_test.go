package deadletter_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

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
		if got := k.all(sel, page[0], page[1]); !slices.Equal(sorted(got),
			sorted([]string{"m3", "m10", "m17", "m24", "m31", "m38", "m45", "m52", "m59"})) {
			k.Errorf("filtered pages of %v: %v", page, got)
		}
	}
	if _, err := k.queue.Browse(k.ctx(),
		deadletter.Query{Selection: deadletter.Selection{Topic: topic, Group: "nope"}}); !errors.Is(err, driver.ErrNotFound) {
		k.Errorf("unknown group: %v", err)
	}
	if _, err := k.queue.Browse(k.ctx(), deadletter.Query{Cursor: "rubbish"}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("rubbish as a cursor: %v", err)
	}
	first, err := k.queue.Browse(k.ctx(), deadletter.Query{Selection: sel, Limit: 1})
	k.ok(err)
	for _, other := range []deadletter.Selection{{Topic: topic, Group: "a"}, {Topic: "other"}} {
		if _, err := k.queue.Browse(k.ctx(),
			deadletter.Query{Selection: other, Cursor: first.Next}); !errors.Is(err, driver.ErrInvalid) {
			k.Errorf("the cursor of another listing for %+v: %v", other, err)
		}
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
	q := deadletter.Query{Selection: deadletter.Selection{Topic: topic, Where: k.where(`id == "m299"`)}, MaxScan: 100,
		MaxTime: time.Minute}
	for _, want := range []int{100, 200, 300} {
		p, err := k.queue.Browse(k.ctx(), q)
		k.ok(err)
		if p.Scanned != want || p.Total != 300 || len(p.Letters) != want/300 {
			k.Errorf("scanned %d of %d, found %d; want %d", p.Scanned, p.Total, len(p.Letters), want)
		}
		q.Cursor = p.Next
	}
	q.Cursor, q.Where = "", k.where(`json.x.y == 1`)
	p, err := k.queue.Browse(k.ctx(), q)
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
	}{{deadletter.ByFingerprint, []int{35, 7}}, {deadletter.ByReason, []int{35, 7}}, {deadletter.ByTopic, []int{42}},
		{deadletter.ByGroup, []int{42}}, {deadletter.ByKey, []int{42}}} {
		for _, scan := range []int{0, 10} {
			var t deadletter.Tally
			q := deadletter.TallyQuery{Query: deadletter.Query{MaxScan: scan, MaxTime: time.Minute}, By: c.by}
			for {
				part, err := k.queue.Tally(k.ctx(), q)
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
	t, err := k.queue.Tally(k.ctx(),
		deadletter.TallyQuery{By: deadletter.ByDay,
			Query: deadletter.Query{Selection: deadletter.Selection{Where: k.where(`reason == "fatal"`)}}})
	k.ok(err)
	if len(t.Buckets) == 0 || len(t.Buckets) > 2 || t.Matched != 7 || t.Buckets[0].Day == "" {
		k.Errorf("by day: %+v", t)
	}
	if _, err := k.queue.Tally(k.ctx(), deadletter.TallyQuery{By: "colour"}); !errors.Is(err, driver.ErrInvalid) {
		k.Errorf("by colour: %v", err)
	}
}
