package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// fire is what a tick published.
type fire struct {
	name      string
	tick      time.Time
	published time.Time // by the broker's clock
}

// tickJudge demands of every schedule each second once, from its first tick until the end; none early, and none late.
type tickJudge struct {
	begun, ended time.Time
	late         time.Duration // how late a tick may be
	running      []time.Time   // of a broker in its one process: when each life of it was ready. A tick waits for that
	kills        []time.Time
	stalled      func(from, to time.Time) time.Duration

	lateness []time.Duration
	twice    map[time.Time]bool // kills that came when a tick was taken for the second time
	problems []string
}

func (j *tickJudge) accuse(format string, args ...any) {
	j.problems = append(j.problems, fmt.Sprintf(format, args...))
}

func (j *tickJudge) judge(fires []fire) {
	ticks := map[string]map[time.Time]int{}
	j.twice = map[time.Time]bool{}
	before := map[string]time.Time{} // when the tick before was published: by that the next one is laid
	slices.SortFunc(fires, func(a, b fire) int { return cmp.Or(a.tick.Compare(b.tick), a.published.Compare(b.published)) })
	for _, f := range fires {
		if ticks[f.name] == nil {
			ticks[f.name] = map[time.Time]int{}
		}
		ticks[f.name][f.tick]++
		if ticks[f.name][f.tick] > 1 {
			j.accuse("doubled: tick %s of %s", stamp(f.tick), f.name)
		}
		j.time(f, before[f.name])
		before[f.name] = f.published
	}
	if most := len(j.kills)/20 + 1; len(j.twice) > most {
		j.accuse("late: after %d of %d kills a tick was later than a lease allows", len(j.twice), len(j.kills))
	}
	if len(ticks) != schedules {
		j.accuse("missing: %d of %d schedules fired", len(ticks), schedules)
	}
	for name, seen := range ticks {
		j.complete(name, seen)
	}
}

// complete demands each second from the first tick on, which is that after the schedule was declared.
func (j *tickJudge) complete(name string, seen map[time.Time]int) {
	first := j.ended
	for tick := range seen {
		if tick.Before(first) {
			first = tick
		}
	}
	if first.After(j.begun.Add(time.Second)) {
		j.accuse("missing: %s began with tick %s, and was declared at %s", name, stamp(first), stamp(j.begun))
	}
	for tick := first; tick.Before(j.ended); tick = tick.Add(time.Second) {
		if seen[tick] == 0 {
			j.accuse("missing: tick %s of %s", stamp(tick), name)
		}
	}
}

// time judges when a tick was published. It is laid when the one before is. Those of the end, when nobody ran any more,
// may be late.
func (j *tickJudge) time(f fire, laid time.Time) {
	if f.published.Before(f.tick) {
		j.accuse("early: tick %s of %s was published at %s", stamp(f.tick), f.name, stamp(f.published))
	}
	if f.tick.Add(j.late).After(j.ended) || f.published.After(j.ended) {
		return
	}
	j.lateness = append(j.lateness, f.published.Sub(f.tick))
	since := f.tick
	for _, at := range append([]time.Time{j.begun, laid}, j.running...) {
		if at.Before(f.published) && at.After(since) {
			since = at
		}
	}
	late := f.published.Sub(since) - j.stalled(since, f.published)
	if late <= j.late {
		return
	}
	if i := slices.IndexFunc(j.kills, func(kill time.Time) bool {
		return kill.After(since) && f.published.After(kill) && f.published.Sub(kill)-j.stalled(kill, f.published) <= j.late
	}); i >= 0 && late <= 2*j.late {
		j.twice[j.kills[i]] = true // whoever took it again was killed too, which is rare
		return
	}
	j.accuse("late: tick %s of %s was published at %s, %v late", stamp(f.tick), f.name, stamp(f.published), late)
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000") }
