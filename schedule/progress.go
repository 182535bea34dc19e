package schedule

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Buckets of named values. What a schedule is and how far it is are apart, so that a definition is written by edits
// alone: its revision and the time it was written are those of the edit.
const (
	bucketSchedules = driver.SchedulesBucket
	bucketProgress  = driver.SchedulesBucket + ".progress"
	bucketLook      = driver.SchedulesBucket + ".look"
)

// progress is how far a schedule is. It follows the ticks: a crash may leave it one behind, and who looks for overdue
// schedules sets it right.
type progress struct {
	// Revision of the definition that it is of.
	Revision uint64 `json:"revision"`
	// Next is the tick whose message lies in Topic; zero: there is none.
	Next int64 `json:"next,omitempty"`
	// Last is the tick that was taken last.
	Last    int64  `json:"last,omitempty"`
	Problem string `json:"problem,omitempty"`

	stored uint64 // revision of the value; zero: there is none
}

// decodeProgress reads a value. One that cannot be read is as good as none.
func decodeProgress(v driver.Value) progress {
	var p progress
	if json.Unmarshal(v.Data, &p) != nil {
		p = progress{}
	}
	p.stored = v.Revision
	return p
}

// next returns the tick of d that is to come; zero when there is none.
func (p progress) next(d *definition) time.Time {
	if p.Revision == d.revision {
		return instant(p.Next)
	}
	return d.start()
}

// past reports whether a tick of d was taken before.
func (p progress) past(d *definition, at time.Time) bool {
	return p.Revision == d.revision && (p.Next == 0 || at.UnixMilli() < p.Next)
}

// write returns the write of a progress over what p was read from.
func (p progress) write(name string) driver.Write {
	stored := driver.Condition(p.stored)
	if p.stored == 0 {
		stored = driver.Absent
	}
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	return driver.Write{Name: name, Data: data, If: stored, Quiet: true}
}

// note stores progress. Whoever was before us knows better, and what is not stored is set right by who looks for
// overdue schedules.
func (s *Scheduler) note(ctx context.Context, ws ...driver.Write) {
	if len(ws) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	s.kv.Apply(ctx, bucketProgress, driver.KVOptions{}, ws...)
}

// read returns definitions and progress by name. Of a schedule that does not exist the definition is nil; one that
// cannot be read has an error.
func (s *Scheduler) read(ctx context.Context, names ...string) ([]found, error) {
	defs, err := s.kv.Get(ctx, bucketSchedules, names...)
	if err != nil {
		return nil, err
	}
	return s.withProgress(ctx, defs)
}

// found is a schedule as it was read.
type found struct {
	name string
	def  *definition
	bad  error
	at   progress
	// stored is the revision of the definition's value, also of one that cannot be read; zero: there is none.
	stored uint64
}

// orphaned says that the schedule was deleted, and its progress was not.
func (f *found) orphaned() bool { return f.stored == 0 && f.at.stored != 0 }

func (s *Scheduler) withProgress(ctx context.Context, defs []driver.Value) ([]found, error) {
	names := make([]string, len(defs))
	for i, v := range defs {
		names[i] = v.Name
	}
	at, err := s.kv.Get(ctx, bucketProgress, names...)
	if err != nil {
		return nil, err
	}
	all := make([]found, len(defs))
	for i, v := range defs {
		all[i] = found{name: v.Name, at: decodeProgress(at[i]), stored: v.Revision}
		if v.Revision != 0 {
			all[i].def, all[i].bad = decode(v)
		}
	}
	return all, nil
}
