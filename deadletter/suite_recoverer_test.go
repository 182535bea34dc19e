package deadletter_test

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/runtest"
)

// oneRecovererWorks: of two recoverers one holds the lease, and the other takes over when it stops.
func oneRecovererWorks(k *kit) {
	k.dead(driver.Failure{Reason: "now", Error: "x"}, numbered("m", 20)...)
	options := deadletter.RecovererOptions{Interval: 20 * time.Millisecond,
		Strategies: []deadletter.Strategy{{Name: "now", Reasons: []driver.Reason{"now"}, MaxRounds: 1000}}}
	type running struct {
		r    *deadletter.Recoverer
		stop func()
	}
	start := func() running {
		r, err := deadletter.NewRecoverer(k.queue, options)
		k.ok(err)
		return running{r, runtest.Start(k, r.Run)}
	}
	a, b := start(), start()
	until := func(what string, ok func() bool) {
		k.Helper()
		for deadline := time.Now().Add(3 * time.Minute); !ok(); {
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
	until("the other does not take over", func() bool { return b.r.Stats().Leading })
	k.bury(20, driver.Failure{Reason: "now", Error: "x"})
	until("the other does not work", func() bool { return k.counts(topic).Ready == 20 })
	b.stop()
	if got := k.bodies(topic, 20); len(slices.Compact(sorted(got))) != 20 {
		k.Errorf("%v", got)
	}
}

func deployBringsPanicsBack(k *kit) {
	k.dead(driver.Failure{Reason: driver.ReasonPanic, Error: "nil"}, "m1")
	once := func(version string) deadletter.RecovererStats {
		r, err := deadletter.NewRecoverer(k.queue, deadletter.RecovererOptions{Version: version})
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
