package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// leaderVerdict is what a tape of leaders proves.
type leaderVerdict struct {
	epochs, accepted, late, ended int
	problems                      []string
}

// judgeLeaders judges each group by itself.
func judgeLeaders(all []Event) (v leaderVerdict) {
	groups := map[int][]Event{}
	silenced := map[string][]int64{} // when processes were paused or killed: what they say after that is late
	for _, e := range all {
		switch e.Kind {
		case kindHarm:
			if e.Note == paused || e.Note == killed {
				silenced[e.Process] = append(silenced[e.Process], e.At)
			}
		case kindLeads, kindEnded, kindWrite:
			groups[e.Group] = append(groups[e.Group], e)
		}
	}
	for number, events := range groups {
		j := &leaderJudge{leaderVerdict: &v, all: all, group: number, silenced: silenced}
		j.owners(events)
		j.writes(events)
		j.contexts(events)
	}
	return v
}

type leaderJudge struct {
	*leaderVerdict
	all      []Event
	group    int
	silenced map[string][]int64
}

func (j *leaderJudge) accuse(format string, args ...any) {
	j.problems = append(j.problems, fmt.Sprintf("group %d: ", j.group)+fmt.Sprintf(format, args...))
}

// owners demands that an epoch is of one process.
func (j *leaderJudge) owners(events []Event) {
	owner := map[uint64]string{}
	for _, e := range events {
		if p, known := owner[e.Epoch]; known && p != e.Process {
			j.accuse("epoch %d is of %s and of %s", e.Epoch, p, e.Process)
		}
		owner[e.Epoch] = e.Process
	}
	j.epochs += len(owner)
}

// writes puts accepted writes into the order in which the broker applied them: their epochs never fall, and no late one
// is among them.
func (j *leaderJudge) writes(events []Event) {
	var accepted []Event
	for _, e := range events {
		switch {
		case e.Kind != kindWrite:
		case !e.Refused:
			accepted = append(accepted, e)
		case e.Late:
			j.late++
		}
	}
	j.accepted += len(accepted)
	slices.SortFunc(accepted, func(a, b Event) int { return cmp.Compare(a.Revision, b.Revision) })
	for i, e := range accepted {
		if i > 0 && e.Epoch < accepted[i-1].Epoch {
			j.accuse("a write of epoch %d was accepted after one of epoch %d, at revision %d", e.Epoch, accepted[i-1].Epoch,
				e.Revision)
		}
		if i > 0 && e.Revision == accepted[i-1].Revision {
			j.accuse("revision %d was given twice", e.Revision)
		}
		if e.Late {
			j.accuse("a late write of epoch %d was accepted", e.Epoch)
		}
	}
}

// contexts demands that the context of a lead has ended when another leads, but for what the machine did not let its
// process run.
func (j *leaderJudge) contexts(events []Event) {
	begins := map[uint64]Event{}
	for _, e := range events {
		if e.Kind == kindLeads {
			begins[e.Epoch] = e
		}
	}
	order := slices.Sorted(maps.Keys(begins))
	for _, e := range events {
		meanwhile := func(at int64) bool { return begins[e.Epoch].At <= at && at <= e.At }
		if e.Kind != kindEnded || slices.ContainsFunc(j.silenced[processOf(e.Process)], meanwhile) {
			continue
		}
		i, _ := slices.BinarySearch(order, e.Epoch+1)
		if i == len(order) {
			continue
		}
		j.ended++
		next := begins[order[i]]
		excuse := stalled(j.all, begins[e.Epoch].At, e.At, func(p string) bool { return p == processOf(e.Process) })
		if overlap := time.Duration(e.At-next.At) - excuse; overlap > 0 {
			j.accuse("%s led under epoch %d, and the context of %s under epoch %d ended %v later", next.Process, next.Epoch,
				e.Process, e.Epoch, overlap)
		}
	}
}

// processOf is the process that a candidate is in.
func processOf(name string) string {
	for i := range name {
		if name[i] == '/' {
			return name[:i]
		}
	}
	return name
}
