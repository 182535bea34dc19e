package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// forgetful is how long before a rewind the writes were made that it may lose. A server whose disk is busy postpones
// writing for up to two seconds.
const forgetful = int64(2 * time.Second)

// rewound says that the server fell back to an older state meanwhile: it may have lost claims and settlements, and says
// again what was said before.
func (l *ledger) rewound(from, to int64) bool {
	return slices.ContainsFunc(l.faults, func(s span) bool {
		return s.process == "" && history.Rewinds(s.fault) && s.overlaps(from, to)
	})
}

// forgot says that the server fell back meanwhile, and that it may have lost acknowledged publishes.
func (l *ledger) forgot(from, to int64) bool {
	return slices.ContainsFunc(l.faults, func(s span) bool {
		return s.process == "" && (s.fault == history.Unwritten || l.run.MayForget && history.Rewinds(s.fault)) &&
			s.overlaps(from, to)
	})
}

// reset says that somebody set a group back meanwhile: it goes on twice for a while, from there and from where it was.
func (l *ledger) reset(from, to int64) bool {
	return slices.ContainsFunc(l.faults, func(s span) bool { return s.fault == history.Reset && s.overlaps(from, to) })
}

// forgotten says that an acknowledged message may be gone with what a server forgot.
func (l *ledger) forgotten(m *message) bool {
	return l.forgot(m.At, m.accepted+forgetful) || l.wiped(m.At)
}

// wiped says that after a time the server forgot everything there was, or had done so just before: groups are then gone
// too, until their members join them again.
func (l *ledger) wiped(from int64) bool {
	return slices.ContainsFunc(l.faults, func(s span) bool {
		return s.fault == history.Wiped && s.to+int64(l.run.RecoverIn) >= from
	})
}

// crashed says that a process was killed before a time.
func (l *ledger) crashed(process string, before int64) bool {
	return slices.ContainsFunc(l.crashes, func(e history.Event) bool { return e.Process == process && e.At < before })
}

// serverCrashed says that the server was killed meanwhile.
func (l *ledger) serverCrashed(from, to int64) bool {
	return slices.ContainsFunc(l.faults,
		func(s span) bool { return s.process == "" && s.fault == history.ServerCrash && s.overlaps(from, to) })
}

// checkRecovery measures for how long nobody could publish or receive because of a server's fault. Work must go on soon
// after its end.
func checkRecovery(l *ledger, r *Report) {
	for _, s := range l.faults {
		if s.process != "" || s.fault == history.Stall || s.fault == history.Unwritten || s.fault == history.Reset ||
			s.to == forever {
			continue
		}
		for _, x := range []struct {
			what string
			at   []int64
			gaps *[]int64
		}{{"publish", l.publishes, &r.unpublished}, {"delivery", l.claims, &r.undelivered}} {
			next, ok := after(x.at, s.to)
			if !ok {
				continue // the load was over
			}
			*x.gaps = append(*x.gaps, gap(x.at, s.from, next))
			if late := next - s.to; l.run.RecoverIn > 0 && late > int64(l.run.RecoverIn) && !l.disturbedBy(s, s.to, next) {
				r.violate(LateRecovery, "", fmt.Sprintf("the first %s came %v after the end of %s, more than %v", x.what, ns(late),
					s.fault, l.run.RecoverIn))
			}
		}
	}
}

// after returns the first of some times, which are in order, that is later than t.
func after(times []int64, t int64) (int64, bool) {
	i, _ := slices.BinarySearch(times, t)
	if i == len(times) {
		return 0, false
	}
	return times[i], true
}

// gap is the longest time between two of some times, from the last one before from until to.
func gap(times []int64, from, to int64) int64 {
	i, _ := slices.BinarySearch(times, from)
	last, longest := from, int64(0)
	for ; i < len(times) && times[i] <= to; i++ {
		longest = max(longest, times[i]-last)
		last = times[i]
	}
	return longest
}

// disturbedBy says that another fault than this one was going on.
func (l *ledger) disturbedBy(but span, from, to int64) bool {
	return slices.ContainsFunc(l.faults, func(s span) bool { return s != but && s.overlaps(from, to) })
}

// checkProblems passes on what the driver itself finds wrong with its data.
func checkProblems(l *ledger, r *Report) {
	for _, p := range l.problems {
		r.violate(Conservation, p.ID, fmt.Sprintf("the driver's audit, group %q: %s", p.Group, p.Note))
	}
}
