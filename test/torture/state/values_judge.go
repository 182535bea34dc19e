package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

const (
	// pace is how far the clock of the broker may differ from that of the tape within a TTL.
	pace = 50 * time.Millisecond
	// estimated is how well whoever reads knows the clock of the broker.
	estimated = 300 * time.Millisecond
	// arrival is how long a request may be under way whose sender heard no answer.
	arrival = 5 * time.Second
	// recovery is how long a process that was cut off may take after it is healed.
	recovery = 5 * time.Second
)

// valuesVerdict is what a tape of writers proves.
type valuesVerdict struct {
	applied, refused, fenced, unknown, repeated, reads, lives int

	took     []time.Duration // by calls of whoever was not harmed
	problems []string
}

// call is one call and its answer.
type call struct {
	process    string
	op         int
	name       string
	w          *write // nil: a read
	start, end int64  // end is zero if there was no answer
	err        errKind
	revision   uint64
	epoch      uint64
	found      *found
}

// entry is a write, with all calls that made it. It was applied at a moment from start to end, of the first call and of
// the first sign that it had been.
type entry struct {
	*write
	calls      []*call
	start, end int64
	applied    bool
	maybe      bool // nobody knows whether it was applied
	revision   uint64
	epoch      uint64
}

// column is what was written under a name.
type column struct {
	puts    []*entry // applied, in order of revisions
	maybe   []*entry // puts that may have been applied
	deletes []*entry // that were or may have been applied
}

type valuesJudge struct {
	valuesVerdict
	calls   []*call
	entries map[string]*entry
	columns map[string]*column
}

// judgeValues holds what was answered against what the contract says of named values: revisions are the order of all
// writes, and every answer must fit it.
func judgeValues(all []Event) valuesVerdict {
	j := &valuesJudge{entries: map[string]*entry{}, columns: map[string]*column{}}
	j.gather(all)
	j.observe()
	j.arrange()
	j.realTime()
	for _, c := range j.columns {
		for i, x := range c.puts {
			var before *entry
			if i > 0 {
				before = c.puts[i-1]
			}
			j.put(c, before, x)
		}
		for _, d := range c.deletes {
			j.delete(c, d)
		}
	}
	for _, c := range j.calls {
		j.answer(c)
	}
	j.times(all)
	return j.valuesVerdict
}

func (j *valuesJudge) accuse(format string, args ...any) {
	j.problems = append(j.problems, fmt.Sprintf(format, args...))
}

func (e *entry) String() string {
	return fmt.Sprintf("%s of %s at revision %d", e.ID, e.Name, e.revision)
}

// gather pairs calls with their answers, and calls of the same write with each other.
func (j *valuesJudge) gather(all []Event) {
	open := map[string]*call{}
	key := func(e Event) string { return fmt.Sprintf("%s %d", e.Process, e.Op) }
	for _, e := range all {
		switch e.Kind {
		case kindCall:
			c := &call{process: e.Process, op: e.Op, name: e.Name, w: e.Write, start: e.At}
			open[key(e)], j.calls = c, append(j.calls, c)
		case kindAnswer:
			if c := open[key(e)]; c != nil {
				c.end, c.err, c.revision, c.epoch, c.found = e.At, e.Err, e.Revision, e.Epoch, e.Found
			}
		}
	}
	for _, c := range j.calls {
		if c.w == nil {
			j.reads++
			continue
		}
		x := j.entries[c.w.ID]
		if x == nil {
			x = &entry{write: c.w, start: c.start}
			j.entries[c.w.ID] = x
		} else {
			j.repeated++
		}
		x.start = min(x.start, c.start)
		x.calls = append(x.calls, c)
	}
}

// sign says that a write was applied by a moment. Every sign tells the same revision.
func (j *valuesJudge) sign(x *entry, revision, epoch uint64, at int64) {
	if x.applied && (x.revision != revision || x.epoch != epoch) {
		j.accuse("%v was applied twice: it is seen at revision %d, epoch %d, and %d, %d", x, x.revision, x.epoch, revision,
			epoch)
	}
	if !x.applied || at < x.end {
		x.end = at
	}
	x.applied, x.revision, x.epoch = true, revision, epoch
}

// observe finds out which writes were applied: who was told so, and who saw what they wrote.
func (j *valuesJudge) observe() {
	for _, x := range j.entries {
		for _, c := range x.calls {
			if c.end != 0 && c.err == applied {
				j.sign(x, c.revision, c.epoch, c.end)
			}
			x.maybe = x.maybe || c.end == 0 || c.err == unknown
		}
	}
	for _, c := range j.calls {
		if c.found == nil {
			continue
		}
		x := j.entries[c.found.ID]
		if x == nil || x.Name != c.name || x.start > c.end {
			j.accuse("%s saw %q of %s, which nobody had written", c.process, c.found.ID, c.name)
			continue
		}
		if !x.applied && !x.maybe {
			j.accuse("%v was refused, and %s saw it", x, c.process)
		}
		j.sign(x, c.found.Revision, c.found.Epoch, c.end)
	}
}

// arrange puts writes into columns, by revision.
func (j *valuesJudge) arrange() {
	revisions := map[uint64]*entry{}
	for _, x := range j.entries {
		c := j.columns[x.Name]
		if c == nil {
			c = &column{}
			j.columns[x.Name] = c
		}
		x.maybe = x.maybe && !x.applied
		switch {
		case x.Delete && (x.applied || x.maybe):
			c.deletes = append(c.deletes, x)
		case x.applied:
			c.puts = append(c.puts, x)
			if other := revisions[x.revision]; other != nil {
				j.accuse("%v has the revision of %v", x, other)
			}
			revisions[x.revision] = x
		case x.maybe:
			c.maybe = append(c.maybe, x)
		}
		if x.applied {
			j.applied++
		} else if x.maybe {
			j.unknown++
		}
	}
	for _, c := range j.columns {
		slices.SortFunc(c.puts, func(a, b *entry) int { return cmp.Compare(a.revision, b.revision) })
		for _, x := range c.puts {
			if x.revision == x.epoch {
				j.lives++
			}
		}
	}
}

// realTime demands that a write that was called after another was answered has the larger revision, in the whole
// bucket.
func (j *valuesJudge) realTime() {
	var puts []*entry
	for _, c := range j.columns {
		puts = append(puts, c.puts...)
	}
	byEnd := slices.Clone(puts)
	slices.SortFunc(puts, func(a, b *entry) int { return cmp.Compare(a.start, b.start) })
	slices.SortFunc(byEnd, func(a, b *entry) int { return cmp.Compare(a.end, b.end) })
	var newest *entry
	for _, x := range puts {
		for len(byEnd) > 0 && byEnd[0].end < x.start {
			if newest == nil || byEnd[0].revision > newest.revision {
				newest = byEnd[0]
			}
			byEnd = byEnd[1:]
		}
		if newest != nil && newest.revision > x.revision {
			j.accuse("%v was called after %v was answered", x, newest)
		}
	}
}

// put judges a write that was applied after another of its name, or after none.
func (j *valuesJudge) put(c *column, before, x *entry) {
	follows := before != nil && x.epoch == before.epoch
	switch {
	case x.If == driver.Absent && x.epoch != x.revision:
		j.accuse("%v demanded that there is nothing, and went on with epoch %d", x, x.epoch)
	case x.If != 0 && x.If != driver.Absent && (!follows || before.revision != uint64(x.If)):
		j.accuse("%v replaced revision %d, and before it is %v", x, x.If, before)
	}
	switch {
	case x.epoch == x.revision && before != nil && !c.mayHaveEnded(before, x.end, pace):
		j.accuse("%v began anew, and %v had not ended", x, before)
	case follows && c.hasEnded(before, x.start, pace):
		j.accuse("%v went on with epoch %d, and %v had ended", x, x.epoch, before)
	case x.epoch != x.revision && !follows && !slices.ContainsFunc(c.maybe,
		func(u *entry) bool { return u.start < x.end }):
		j.accuse("%v has epoch %d, which nobody began", x, x.epoch)
	}
	if x.Fence != nil {
		j.fence(x)
	}
}

// fence demands that the lease of a write that was applied had its epoch at that revision.
func (j *valuesJudge) fence(x *entry) {
	leases := j.columns[x.Fence.Name]
	var last *entry
	if leases != nil {
		for _, l := range leases.puts {
			if l.revision < x.revision {
				last = l
			}
		}
	}
	switch {
	case last == nil || last.epoch != x.Fence.Epoch:
		j.accuse("%v was applied under epoch %d of %s, and the lease then was %v", x, x.Fence.Epoch, x.Fence.Name, last)
	case leases.hasEnded(last, x.start, pace):
		j.accuse("%v was applied under epoch %d of %s, which had ended", x, x.Fence.Epoch, x.Fence.Name)
	}
}

// delete judges a deletion that was applied. It has no revision: only what was certainly before it counts.
func (j *valuesJudge) delete(c *column, d *entry) {
	if !d.applied {
		return
	}
	if d.If != 0 && d.If != driver.Absent {
		for _, x := range c.puts {
			if x.revision > uint64(d.If) && x.end < d.start {
				j.accuse("%s deleted revision %d of %s, and %v was there", d.ID, d.If, d.Name, x)
			}
		}
	}
	if d.Fence == nil || j.columns[d.Fence.Name] == nil {
		return
	}
	leases := j.columns[d.Fence.Name]
	var last *entry
	for _, l := range leases.puts {
		if l.epoch > d.Fence.Epoch && l.end < d.start {
			j.accuse("%s deleted %s under epoch %d of %s, and %v was there", d.ID, d.Name, d.Fence.Epoch, d.Fence.Name, l)
		}
		if l.epoch == d.Fence.Epoch {
			last = l
		}
	}
	if last != nil && leases.hasEnded(last, d.start, pace) {
		j.accuse("%s deleted %s under epoch %d of %s, which had ended", d.ID, d.Name, d.Fence.Epoch, d.Fence.Name)
	}
}

// answer judges what a call was told: what it saw, and why it was refused.
func (j *valuesJudge) answer(c *call) {
	if c.end == 0 {
		return
	}
	col := j.columns[c.name]
	if col == nil {
		col = &column{}
	}
	switch {
	case c.w == nil && c.err == applied:
		j.saw(col, c, estimated)
	case c.err == conflict:
		j.refused++
		j.saw(col, c, pace)
		if c.found == nil && (c.w.If == driver.Absent || c.w.If == 0) || c.found != nil &&
			uint64(c.w.If) == c.found.Revision {
			j.accuse("%s was refused by what it demanded: condition %d, found %+v", c.w.ID, c.w.If, c.found)
		}
	case c.err == leaseLost:
		j.fenced++
		j.lost(c)
	}
}

// saw demands that what was seen was there at that time, and that nothing was seen only where there may have been
// nothing.
func (j *valuesJudge) saw(col *column, c *call, slack time.Duration) {
	var newest *entry // that was certainly there when the call began, unless its life had ended
	for _, x := range col.puts {
		if x.end < c.start {
			newest = x
		}
	}
	switch {
	case newest == nil:
	case c.found == nil:
		if !slices.ContainsFunc(col.puts, func(x *entry) bool {
			return x.epoch == newest.epoch && x.start < c.end && col.mayHaveEnded(x, c.end, slack)
		}) {
			j.accuse("%s found nothing under %s, and %v was there", c.process, c.name, newest)
		}
	case c.found.Revision < newest.revision:
		j.accuse("%s saw revision %d of %s, and %v had been answered before", c.process, c.found.Revision, c.name, newest)
	}
	if c.found == nil {
		return
	}
	if x := j.entries[c.found.ID]; x != nil && x.applied && col.hasEnded(x, c.start, slack) {
		j.accuse("%s saw %v, which had ended", c.process, x)
	}
}

// lost demands that a fence that was refused may have been lost.
func (j *valuesJudge) lost(c *call) {
	leases := j.columns[c.w.Fence.Name]
	if leases == nil {
		return
	}
	known := false
	for _, l := range leases.puts {
		if l.epoch > c.w.Fence.Epoch && l.start < c.end || l.epoch == c.w.Fence.Epoch && l.start < c.end &&
			leases.mayHaveEnded(l, c.end, pace) {
			return
		}
		known = known || l.epoch == c.w.Fence.Epoch
	}
	if known {
		j.accuse("%s was refused under epoch %d of %s, which had not ended", c.w.ID, c.w.Fence.Epoch, c.w.Fence.Name)
	}
}

// mayHaveEnded reports whether the life of a value may have ended between a write of it and a moment.
func (c *column) mayHaveEnded(x *entry, until int64, slack time.Duration) bool {
	expires := func(u *entry) bool {
		return u.TTL > 0 && until-u.start >= int64(u.TTL-slack) && (u == x || u.start > x.start-int64(arrival))
	}
	return expires(x) || slices.ContainsFunc(c.maybe, expires) || slices.ContainsFunc(c.deletes, func(d *entry) bool {
		return d.start < until && (d.maybe && d.start > x.start-int64(arrival) || d.applied && d.end > x.start)
	})
}

// hasEnded reports whether the life of a value has certainly ended between a write of it and a moment, if nothing else
// was written meanwhile.
func (c *column) hasEnded(x *entry, before int64, slack time.Duration) bool {
	if slices.ContainsFunc(c.deletes, func(d *entry) bool { return d.applied && d.start > x.end && d.end < before }) {
		return true
	}
	renewed := func(u *entry) bool { return u.start < before && u.start > x.start-int64(arrival) }
	later := func(p *entry) bool { return p.revision > x.revision && p.epoch == x.epoch && p.start < before }
	return x.TTL > 0 && before-x.end > int64(x.TTL+slack) && !slices.ContainsFunc(c.maybe, renewed) &&
		!slices.ContainsFunc(c.puts, later)
}

// times demands that whoever is not harmed is answered soon, however others die.
func (j *valuesJudge) times(all []Event) {
	harmed := map[string][][2]int64{} // from and to, by process; the server has no name
	for _, e := range all {
		switch e.Kind {
		case kindHarm:
			harmed[e.Process] = append(harmed[e.Process], [2]int64{e.At, 1<<63 - 1})
		case kindHeal:
			list := harmed[e.Process]
			list[len(list)-1][1] = e.At + int64(recovery)
		}
	}
	for _, c := range j.calls {
		meanwhile := func(h [2]int64) bool { return c.start < h[1] && c.end > h[0] }
		if c.end == 0 || slices.ContainsFunc(harmed[processOf(c.process)], meanwhile) ||
			slices.ContainsFunc(harmed[""], meanwhile) {
			continue
		}
		took := time.Duration(c.end - c.start)
		j.took = append(j.took, took)
		if took > answerIn && took-stalled(all, c.start, c.end, func(p string) bool { return p == processOf(c.process) }) >
			answerIn {
			j.accuse("%s waited for %v for the answer of its call %d, which ended with %q", c.process, took, c.op, c.err)
		}
	}
}
