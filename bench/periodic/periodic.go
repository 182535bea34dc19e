// Package periodic measures schedules that tick every second, of Ferry and of its peers: how late handlers start, and
// which ticks are doubled or missed while the process that runs them is killed every two seconds.
package periodic

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Schedules is how many tick, all at every full second.
const Schedules = 20

// Topic is where handlers find what ticks made.
const topic = "periodic"

// System runs schedules and their handlers.
type System struct {
	Name string
	// Settings say how it is used, and why so, in the report.
	Settings string
	// Mortal says that it can be killed: what it keeps is in a server or in a file.
	Mortal bool
	// Start makes what outlives the process that runs: where that is, and how it ends.
	Start func() (where string, stop func() error, err error)
	// Run declares the schedules and handles what they make until ctx ends.
	Run func(ctx context.Context, where string, j *Journal) error
}

// Systems are all that are measured.
func Systems() []System {
	return []System{
		ferry("ferry memory", false, inMemory), ferry("ferry disk", true, onDisk), ferry("ferry redis", true, onRedis),
		asynqSystem(), riverSystem(),
	}
}

func name(i int) string { return fmt.Sprintf("schedule%02d", i) }

// Journal is a file with a line for everything that a process did, which is there when it is killed.
type Journal struct{ file *os.File }

// OpenJournal appends to a file.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &Journal{f}, err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// Fired notes for which tick a message was made, where its handler cannot tell.
func (j *Journal) Fired(schedule, id string, tick time.Time) {
	j.line("fired", schedule, id, tick, time.Now())
}

// Handled notes that a handler started. The zero tick is not known.
func (j *Journal) Handled(schedule, id string, tick time.Time) {
	j.line("handled", schedule, id, tick, time.Now())
}

// line is one write, so that lines of several goroutines are not mixed.
func (j *Journal) line(what, schedule, id string, tick, at time.Time) {
	micros := int64(0)
	if !tick.IsZero() {
		micros = tick.UnixMicro()
	}
	_, _ = fmt.Fprintf(j.file, "%s %s %s %d %d\n", what, schedule, strings.ReplaceAll(id, " ", "_"), micros,
		at.UnixMicro())
}
