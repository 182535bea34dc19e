package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
)

func replayByFilter(k *kit) {
	k.dead(slow, numbered("s", 12)...)
	k.dead(bad, numbered("b", 3)...)
	r := deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: topic,
		Where: k.where(`reason == "timeout" and attempts >= 1`)}, DryRun: true}
	if got := k.replay(r); got.Done != 12 || got.Skipped != 0 || got.Phase != deadletter.Done {
		k.Errorf("dry run: %+v", got)
	}
	if c := k.counts(topic); c.Dead != 15 || c.Ready != 0 {
		k.Errorf("the dry run changed something: %+v", c)
	}
	var outcomes []deadletter.LetterReport
	r.DryRun, r.Each = false, func(o deadletter.LetterReport) { outcomes = append(outcomes, o) }
	if got := k.replay(r); got.Done != 12 || got.Total != 15 || len(outcomes) != 12 || outcomes[0].ID != "s000" ||
		outcomes[0].Result != deadletter.Replayed {
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
	p, err := k.queue.Browse(k.ctx(), deadletter.Query{Selection: r.Selection})
	k.ok(err)
	if p.Letters[0].Dead.Rounds != 1 {
		k.Errorf("a letter that died again has %d rounds", p.Letters[0].Dead.Rounds)
	}
	one := deadletter.ReplayOptions{
		Selection: deadletter.Selection{
			Only: []driver.Target{p.Letters[5].Target(), {Topic: topic, Group: driver.DefaultGroup, ID: "nothing"}}}}
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
		if got := k.replay(deadletter.ReplayOptions{Selection: deadletter.Selection{Where: k.where(where)}}); got.Done == 0 {
			k.Fatalf("%+v", got)
		}
		k.bury(int(k.counts(topic).Ready), slow)
	}
	if got := k.replay(deadletter.ReplayOptions{}); got.Done != 60 {
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
	k.publish(&driver.Message{ID: "json", Body: []byte(`{"user":{"id":7}}`), Headers: map[string]string{"old": "1"},
		ContentType: "application/json"}, &driver.Message{ID: "text", Body: []byte("oops")})
	k.bury(2, bad)
	patch, err := deadletter.ParsePatch([]byte(`[{"op":"replace","path":"/user/id","value":8}]`))
	k.ok(err)
	r := deadletter.ReplayOptions{Edit: deadletter.Edits(deadletter.PatchBody(patch),
		deadletter.SetHeader("by", "operator"), deadletter.RemoveHeader("old")), DryRun: true}
	if got := k.replay(r); got.Done != 1 || got.Skipped != 1 {
		k.Errorf("dry run: %+v", got)
	}
	r.DryRun = false
	if got := k.replay(r); got.Done != 1 || got.Skipped != 1 || len(got.Why) != 1 {
		k.Errorf("%+v", got)
	}
	k.take(topic, driver.DefaultGroup, 1, func(d *driver.Delivery) driver.Settlement {
		if string(d.Body) != `{"user":{"id":8}}` || d.Headers["by"] != "operator" || d.Headers["old"] != "" ||
			d.ID != "json" || d.Cause != driver.CauseReplay {
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
	half := faulty.New(k.d)
	half.Set(faulty.Delete, faulty.Fail(driver.ErrNotApplied))
	crashed := newKit(k.T, broker(k.T, shared{half}))
	if _, err := crashed.queue.Replay(k.ctx(), deadletter.ReplayOptions{To: "rescue"}); err == nil {
		k.Fatal("the delete did not fail")
	}
	if c := k.counts("rescue"); c.Ready != 25 || k.counts(topic).Dead != 25 {
		k.Fatalf("%+v", c)
	}
	if got := k.replay(deadletter.ReplayOptions{To: "rescue"}); got.Done != 25 {
		k.Errorf("%+v", got)
	}
	if c := k.counts(topic); c.Dead != 0 || c.Ready != 0 || k.counts("rescue").Ready != 25 {
		k.Errorf("%+v %+v", c, k.counts("rescue"))
	}
	k.take("rescue", driver.DefaultGroup, 25, func(d *driver.Delivery) driver.Settlement {
		if d.Headers[deadletter.HeaderReplayOf] != topic+"/default/"+string(d.Body) ||
			d.Headers[deadletter.HeaderRounds] != "1" {
			k.Errorf("%v", d.Headers)
		}
		return driver.Settlement{Outcome: driver.Ack}
	})
	if _, err := k.queue.Replay(k.ctx(),
		deadletter.ReplayOptions{Selection: deadletter.Selection{Topic: topic}, To: topic}); !errors.Is(err,
		driver.ErrInvalid) {
		k.Errorf("to where they are: %v", err)
	}
}

// shared is a driver that a second broker does not close.
type shared struct{ driver.Driver }

func (shared) Close(context.Context) error { return nil }

func twoReplaysAtOnce(k *kit) {
	k.dead(slow, numbered("m", 200)...)
	var all sync.WaitGroup
	reports, errs := make([]deadletter.Report, 4), make([]error, 4)
	for i := range reports {
		all.Go(func() { reports[i], errs[i] = k.queue.Replay(k.ctx(), deadletter.ReplayOptions{}) })
	}
	all.Wait()
	k.ok(errors.Join(errs...))
	done := 0
	for _, r := range reports {
		done += r.Done
	}
	if c := k.counts(topic); done != 200 || k.exact() && c.Ready != 200 || c.Dead != 0 {
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
	op, err := k.queue.Start(k.ctx(), deadletter.ReplayOptions{Each: func(deadletter.LetterReport) {
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
	// some die again before it goes on
	k.take(topic, driver.DefaultGroup, again, func(*driver.Delivery) driver.Settlement {
		return driver.Settlement{Outcome: driver.Dead, Failure: &driver.Failure{Reason: driver.ReasonTimeout}}
	})
	rest, err := k.queue.Replay(k.ctx(), deadletter.ReplayOptions{Checkpoint: &report.Checkpoint})
	k.ok(err)
	if rest.Done != 250-report.Done || rest.Checkpoint.Done != 250 {
		k.Errorf("%d before, then %+v", report.Done, rest)
	}
	if c := k.counts(topic); c.Dead != int64(again) || k.exact() && c.Ready != int64(250-again) {
		k.Errorf("%+v", c)
	}
}

func replayInParts(k *kit) {
	k.dead(slow, numbered("m", 100)...)
	seen := map[string]int{}
	var sub driver.Subscription
	report, err := k.queue.Replay(k.ctx(), deadletter.ReplayOptions{MaxPlan: 30, Each: func(o deadletter.LetterReport) {
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
		k.ok(errors.Join(sub.Settle(k.ctx(),
			[]driver.Settlement{{Delivery: ds[0], Outcome: driver.Dead,
				Failure: &driver.Failure{Reason: driver.ReasonTimeout}}})...))
	}})
	k.ok(err)
	k.ok(sub.Close(k.ctx()))
	if report.Done != 100 || len(seen) != 100 {
		k.Errorf("%+v, %d different", report, len(seen))
	}
	if c := k.counts(topic); c.Dead != 10 || k.exact() && c.Ready != 90 {
		k.Errorf("%+v", c)
	}
}
