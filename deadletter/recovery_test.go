package deadletter_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// onlyLetter returns the one dead letter there is.
func (k *kit) onlyLetter() deadletter.Letter {
	k.Helper()
	page, err := k.queue.Browse(k.ctx(), deadletter.Query{})
	k.ok(err)
	if len(page.Letters) != 1 {
		k.Fatalf("%d dead letters, want one", len(page.Letters))
	}
	return page.Letters[0]
}

// What is told of a letter is what a recoverer then does: it comes back at that time, not before, and given up is what
// never does.
func TestRecoveryIsWhatTheRecovererDoes(t *testing.T) {
	for reason, want := range map[driver.Reason]struct {
		plan  deadletter.Plan
		waits []time.Duration // of its rounds
	}{
		driver.ReasonTimeout: {deadletter.PlanRetry,
			[]time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute}},
		driver.ReasonMaxAttempts: {deadletter.PlanRetry,
			[]time.Duration{5 * time.Minute, 20 * time.Minute, 80 * time.Minute}},
		driver.ReasonPanic: {deadletter.PlanDeploy, nil},
		driver.ReasonFatal: {deadletter.PlanReview, nil},
		"card_declined":    {deadletter.PlanReview, nil},
	} {
		t.Run(string(reason), func(t *testing.T) {
			virtual(t, func(k *kit) {
				r, err := deadletter.NewRecoverer(k.queue, deadletter.RecovererOptions{})
				k.ok(err)
				k.dead(driver.Failure{Reason: reason, Error: "x"}, "m")
				for _, wait := range want.waits {
					l := k.onlyLetter()
					got := deadletter.RecoveryOf(k.ctx(), l, nil)
					if got != r.Recovery(k.ctx(), l) || got.Plan != want.plan || got.Priority != 5 ||
						!got.NextRetry.Equal(l.Dead.DiedAt.Add(wait)) {
						k.Fatalf("round %d, died at %v: %+v, want %v later", l.Dead.Rounds, l.Dead.DiedAt, got, wait)
					}
					time.Sleep(time.Until(got.NextRetry) - 1)
					k.ok(r.Once(k.ctx()))
					if n := k.counts(topic).Dead; n != 1 {
						k.Fatal("it came back before its time")
					}
					time.Sleep(time.Nanosecond)
					k.ok(r.Once(k.ctx()))
					k.bury(1, driver.Failure{Reason: reason, Error: "x"})
				}
				got := deadletter.RecoveryOf(k.ctx(), k.onlyLetter(), nil)
				if last := want.plan; len(want.waits) > 0 && got.Plan != deadletter.PlanGiveUp || len(want.waits) == 0 &&
					got.Plan != last || !got.NextRetry.IsZero() {
					k.Errorf("after %d rounds: %+v", len(want.waits), got)
				}
			})
		})
	}
}

// A letter whose retry would come after its time to recover is over says so at once.
func TestRecoveryKnowsTheEndOfItsTime(t *testing.T) {
	virtual(t, func(k *kit) {
		late := []deadletter.Strategy{
			{Name: "late", Backoff: driver.RetryPolicy{Base: 2 * time.Hour, Cap: 2 * time.Hour, NoJitter: true}, TTL: time.Hour}}
		k.dead(driver.Failure{Reason: driver.ReasonTimeout, Error: "x"}, "m")
		if got := deadletter.RecoveryOf(k.ctx(), k.onlyLetter(), late); got.Plan != deadletter.PlanGiveUp ||
			got.Strategy != "late" {
			k.Errorf("%+v", got)
		}
		if got := deadletter.RecoveryOf(k.ctx(), k.onlyLetter(),
			[]deadletter.Strategy{}); got.Plan != deadletter.PlanReview || got.Strategy != "" {
			k.Errorf("without a strategy: %+v", got)
		}
	})
}

func TestRecoveryPriorities(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason driver.Reason
		lane   driver.Priority
		want   int
	}{
		{driver.ReasonTimeout, driver.Normal, 5}, {driver.ReasonTimeout, driver.Low, 5},
		{driver.ReasonTimeout, driver.High, 8}, {driver.ReasonTimeout, driver.Urgent, 8},
		{driver.ReasonKeyBlocked, driver.Normal, 2}, {driver.ReasonKeyBlocked, driver.High, 5},
		{driver.ReasonRateLimited, driver.Normal, 4}, {driver.ReasonRateLimited, driver.Urgent, 7},
	} {
		m := &driver.Message{ID: "m", Topic: topic, Priority: c.lane}
		l := deadletter.Letter{From: topic,
			Entry: driver.Entry{Message: m, State: driver.StateDead, Dead: &driver.DeadLetter{Message: m, Reason: c.reason}}}
		if got := deadletter.RecoveryOf(t.Context(), l, nil).Priority; got != c.want {
			t.Errorf("%s in lane %s has recovery priority %d, want %d", c.reason, c.lane, got, c.want)
		}
	}
}
