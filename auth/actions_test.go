package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// record adds n actions of ann.
func record(t *testing.T, a *Actions, n int) {
	t.Helper()
	ctx := WithRequestID(With(context.Background(), &Identity{Name: "ann", Kind: KindUser}), "r1")
	for i := range n {
		if err := a.Record(ctx, Action{What: "topic.purge", Topic: fmt.Sprintf("t%d", i),
			Count: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
}

func verify(t *testing.T, a *Actions) Verdict {
	t.Helper()
	v, err := a.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRecordAndList(t *testing.T) {
	t.Parallel()
	a := NewActions(broker(t))
	record(t, a, 5)
	p, err := a.List(context.Background(), ActionQuery{Limit: 2})
	if err != nil || len(p.Actions) != 2 || p.Next == "" {
		t.Fatalf("%+v, %v", p, err)
	}
	if got := p.Actions[0]; got.Sequence != 5 || got.Who != "user ann" || got.RequestID != "r1" ||
		got.Outcome != Done || got.Topic != "t4" || got.Count != 4 {
		t.Errorf("the newest is %+v", got)
	}
	p, err = a.List(context.Background(), ActionQuery{Cursor: p.Next})
	if err != nil || len(p.Actions) != 3 || p.Next != "" || p.Actions[2].Sequence != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if v := verify(t, a); v.Problems != nil || v.Checked != 5 || v.Newest != 5 || v.Head == "" {
		t.Errorf("%+v", v)
	}
}

// TestTamper: whatever somebody does to one value of the chain is found.
func TestTamper(t *testing.T) {
	t.Parallel()
	rewrite := func(v driver.Value, change func(*Recorded)) driver.Write {
		var r Recorded
		_ = json.Unmarshal(v.Data, &r)
		change(&r)
		data, _ := json.Marshal(r)
		return driver.Write{Name: v.Name, Data: data}
	}
	for name, tamper := range map[string]struct {
		sequence uint64
		write    func(v driver.Value) driver.Write
		problem  string
	}{
		"a text": {3, func(v driver.Value) driver.Write {
			return rewrite(v,
				func(r *Recorded) { r.Who = "user bob" })
		}, "action 3 was changed"},
		"the newest": {5, func(v driver.Value) driver.Write { return rewrite(v, func(r *Recorded) { r.Count = 99 }) },
			"action 5 was changed"},
		"with hash": {3, func(v driver.Value) driver.Write {
			return rewrite(v, func(r *Recorded) { r.Who = "user bob"; r.Hash = r.hash() })
		}, "action 4 does not follow action 3"},
		"removed": {3, func(v driver.Value) driver.Write { return driver.Write{Name: v.Name, Delete: true} },
			"actions 3 to 3 are missing"},
		"the oldest": {1, func(v driver.Value) driver.Write { return driver.Write{Name: v.Name, Delete: true} },
			"the actions before 2 are missing"},
		"renamed": {2, func(v driver.Value) driver.Write { return driver.Write{Name: actionName(9), Data: v.Data} },
			"lies under the name"},
		"garbage": {2, func(v driver.Value) driver.Write { return driver.Write{Name: v.Name, Data: []byte("{")} },
			"cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := broker(t)
			a := NewActions(b)
			record(t, a, 5)
			ctx, kv := context.Background(), b.Driver().KV()
			values, err := kv.Get(ctx, actionsBucket, actionName(tamper.sequence))
			if err != nil {
				t.Fatal(err)
			}
			if res := kv.Apply(ctx, actionsBucket, driver.KVOptions{}, tamper.write(values[0])); res[0].Err != nil {
				t.Fatal(res[0].Err)
			}
			if v := verify(t, a); !strings.Contains(strings.Join(v.Problems, "\n"), tamper.problem) {
				t.Errorf("found %q, not %q", v.Problems, tamper.problem)
			}
		})
	}
}

// TestRecordersTogether: several servers record at once, and the chain is one.
func TestRecordersTogether(t *testing.T) {
	t.Parallel()
	b := broker(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { record(t, NewActions(b), 10) })
	}
	all.Wait()
	if v := verify(t, NewActions(b)); v.Checked != 80 || v.Problems != nil {
		t.Errorf("%+v", v)
	}
}

func TestActionsAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := NewActions(broker(t))
		record(t, a, 3)
		time.Sleep(KeepActions / 2)
		record(t, a, 2)
		time.Sleep(KeepActions/2 + time.Minute)
		if v := verify(t, a); v.Checked != 2 || v.Problems != nil {
			t.Errorf("%+v", v)
		}
	})
}

// TestActionsCut: when there is no room for more, the oldest go, and an anchor says so.
func TestActionsCut(t *testing.T) {
	t.Parallel()
	b := broker(t)
	a := NewActions(b)
	a.most = 50
	record(t, a, 60)
	if err := a.shorten(context.Background(), 50); err == nil {
		t.Error("a bucket that others filled is shortened")
	}
	if err := a.shorten(context.Background(), 61); err != nil {
		t.Fatal(err)
	}
	if v := verify(t, a); v.Checked != 49 || v.Problems != nil {
		t.Errorf("%d are left, %v", v.Checked, v.Problems)
	}
	record(t, a, 1)
}

// TestDenied: calls that are denied in a loop are two actions, the first and a number.
func TestDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := NewActions(broker(t))
		ctx := context.Background()
		for range 1000 {
			if err := a.Record(ctx, Action{Who: "token ci", What: "topic.purge", Outcome: Denied}); err != nil {
				t.Fatal(err)
			}
		}
		flush := func(all bool, want int) {
			t.Helper()
			if err := a.Flush(ctx, all); err != nil {
				t.Fatal(err)
			}
			if v := verify(t, a); v.Checked != want {
				t.Errorf("%d actions, not %d", v.Checked, want)
			}
		}
		flush(false, 1)
		time.Sleep(denialsFor)
		flush(false, 2)
		p, _ := a.List(ctx, ActionQuery{})
		if p.Actions[0].Count != 999 || p.Actions[0].Outcome != Denied {
			t.Errorf("%+v", p.Actions[0])
		}
		_ = a.Record(ctx, Action{Who: "token ci", What: "topic.purge", Outcome: Denied})
		_ = a.Record(ctx, Action{Who: "token ci", What: "topic.purge", Outcome: Denied})
		flush(true, 4)
	})
}

func TestManyDenialsAreBounded(t *testing.T) {
	t.Parallel()
	var d denials
	recorded := 0
	for i := range 10 * mostDenials {
		if d.first(Action{Who: fmt.Sprint(i)}, time.Now()) {
			recorded++
		}
	}
	if len(d.seen) > mostDenials+1 || recorded > mostDenials+1 {
		t.Errorf("%d kinds are counted, %d recorded", len(d.seen), recorded)
	}
}

// TestLongAndOddTexts: whatever a caller named, the action is kept and verifies.
func TestLongAndOddTexts(t *testing.T) {
	t.Parallel()
	a := NewActions(broker(t))
	for _, text := range []string{strings.Repeat("世", 100_000), "\xff\xfe", "a\x00b\n", `"<>&`} {
		if err := a.Record(context.Background(), Action{Who: text, What: text, Topic: text, Group: text, Filter: text,
			Detail: text, RequestID: text}); err != nil {
			t.Fatal(err)
		}
	}
	if v := verify(t, a); v.Checked != 4 || v.Problems != nil {
		t.Errorf("%+v", v)
	}
}
