package alert

import (
	"sort"
	"time"

	"github.com/ferrymq/ferry/monitor"
)

// counters remember how many dead letters each group had made, and what processes counted, by the minute for a day, to
// tell how many came in an hour. A new leader begins anew.
type counters struct {
	died, moves map[[2]string]*series // by topic and group
	processes   map[[2]string]*series // by process and name of the count
	// unrecoverable are the dead letters that the recovery gave up.
	unrecoverable series
}

// series is one counter: a sample for each minute in which it changed, in order.
type series struct {
	samples []sample
	last    uint64
	seen    time.Time
}

type sample struct {
	at time.Time
	n  uint64
}

// increase is how much a counter grew.
type increase struct {
	hour, day float64
	// normal is how much it grew in an hour on average before the last one; known after two hours.
	normal      float64
	normalKnown bool
}

func newCounters() *counters {
	return &counters{died: map[[2]string]*series{}, moves: map[[2]string]*series{},
		processes: map[[2]string]*series{}}
}

// note adds a sample to a counter.
func note(all map[[2]string]*series, name [2]string, n uint64, now time.Time) *series {
	s := all[name]
	if s == nil {
		s = &series{}
		all[name] = s
	}
	s.add(n, now)
	return s
}

// of notes the dead letters of a group and tells how they grew.
func (c *counters) of(q *monitor.Queue, now time.Time) increase {
	s := note(c.died, [2]string{q.Topic, q.Group}, q.Died, now)
	first, hour := s.samples[0], s.before(now.Add(-time.Hour))
	i := increase{hour: float64(q.Died - hour.n), day: float64(q.Died - first.n)}
	if passed := now.Add(-time.Hour).Sub(first.at); passed >= time.Hour {
		i.normal, i.normalKnown = float64(hour.n-first.n)/passed.Hours(), true
	}
	return i
}

// movedFor is over which time rebalances are counted.
const movedFor = 10 * time.Minute

// moved notes how often partitions of a group changed their owner, and tells how often in movedFor.
func (c *counters) moved(q *monitor.Queue, moves uint64, now time.Time) float64 {
	s := note(c.moves, [2]string{q.Topic, q.Group}, moves, now)
	return float64(moves - s.before(now.Add(-movedFor)).n)
}

func (s *series) add(n uint64, now time.Time) {
	s.seen, s.last = now, n
	last := len(s.samples) - 1
	if last >= 0 && n < s.samples[last].n { // the topic was made anew
		s.samples, last = nil, -1
	}
	if last < 0 || n != s.samples[last].n && now.Sub(s.samples[last].at) >= time.Minute {
		s.samples = append(s.samples, sample{now, n})
	}
	for len(s.samples) > 1 && now.Sub(s.samples[1].at) >= 24*time.Hour {
		s.samples = s.samples[1:]
	}
}

// before is the last sample that is not after t, or the first.
func (s *series) before(t time.Time) sample {
	after := sort.Search(len(s.samples), func(i int) bool { return s.samples[i].at.After(t) })
	return s.samples[max(after-1, 0)]
}

// forget drops what is gone.
func (c *counters) forget(now time.Time) {
	for _, all := range []map[[2]string]*series{c.died, c.moves, c.processes} {
		for name, s := range all {
			if now.Sub(s.seen) > time.Hour {
				delete(all, name)
			}
		}
	}
}
