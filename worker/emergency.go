package worker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Emergency is for dead letters that the broker does not take. They stay unsettled in the broker and are tried again,
// and never acknowledged; after a time they are also written to a file, which 'ferry dlq import' reads.
type Emergency struct {
	// File gets one JSON object on each line, synced, readable by its owner only. It is a file of this user, not a link to
	// one; the rights of others are taken away. Defaults to none.
	File string
	// After is how long the broker is tried before. Defaults to 1 minute.
	After time.Duration
}

func (m Emergency) check(bad func(text, hint string)) {
	switch {
	case m.After < 0:
		bad("Emergency.After is negative", "leave it zero for the default")
	case m.File == "" && m.After > 0:
		bad("Emergency has no file", "set Emergency.File")
	case m.File != "":
		if info, err := os.Stat(filepath.Dir(m.File)); err != nil || !info.IsDir() {
			bad("the directory of the emergency file does not exist",
				"make "+filepath.Dir(m.File)+" first: nothing can be created when it is needed")
		}
	}
}

// maxUnburied bounds the dead letters that wait for the broker or for the file. Those beyond it are not written, but
// stay in the broker as all do.
const maxUnburied = 1000

// emergencyRetry is when a write to the file that failed is tried again.
const emergencyRetry = 10 * time.Second

// emergencies are the dead letters that the broker did not take. All but kick is guarded by engine.mu.
type emergencies struct {
	Emergency
	kick    chan struct{}
	waiting map[string]*unburied // by topic, group and id
	open    func(name string) (letterFile, error)
}

// unburied is one of them.
type unburied struct {
	c       *consumer
	d       *driver.Delivery
	failure driver.Failure
	err     error         // the broker's, the last one
	due     time.Duration // when it goes to the file
	written bool
}

func newEmergencies(o Emergency) *emergencies {
	if o.File == "" {
		return nil
	}
	if o.After == 0 {
		o.After = time.Minute
	}
	return &emergencies{Emergency: o, kick: make(chan struct{}, 1), waiting: map[string]*unburied{}, open: openLetters}
}

// watchDead takes in the broker's answer to the settlement of r.
func (e *engine) watchDead(r *run, s *settlement, err error, now time.Duration) {
	m := e.emergency
	if m == nil || s.Outcome != driver.Dead && len(m.waiting) == 0 {
		return
	}
	name := r.c.topic + "/" + r.c.group + "/" + r.d.ID
	known := m.waiting[name]
	switch {
	case err == nil, errors.Is(err, ferry.ErrLeaseLost) && r.doubtful: // settled, or most likely so
		delete(m.waiting, name)
	case s.Outcome != driver.Dead || s.Failure == nil:
	case known != nil:
		known.d, known.failure, known.err = r.d, *s.Failure, err
	case len(m.waiting) < maxUnburied:
		m.waiting[name] = &unburied{c: r.c, d: r.d, failure: *s.Failure, err: err, due: now + m.After}
		select {
		case m.kick <- struct{}{}:
		default:
		}
	}
}

// keepEmergencies writes what is due to the file, until ctx ends.
func (e *engine) keepEmergencies(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		due, next := e.dueEmergencies()
		if len(due) > 0 {
			e.writeEmergencies(ctx, due)
			continue
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-e.emergency.kick:
		}
	}
}

// dueEmergencies returns copies of what goes to the file now, and when to look again.
func (e *engine) dueEmergencies() (due []unburied, next time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	next = time.Hour
	for _, u := range e.emergency.waiting {
		switch {
		case u.written:
		case u.due <= now:
			u.written = true // unless the file refuses it
			due = append(due, *u)
		default:
			next = min(next, u.due-now)
		}
	}
	return due, next
}

// writeEmergencies writes dead letters to the file, and makes noise.
func (e *engine) writeEmergencies(ctx context.Context, due []unburied) {
	err := e.emergency.write(due)
	e.mu.Lock()
	for _, u := range due {
		name := u.c.topic + "/" + u.c.group + "/" + u.d.ID
		switch known := e.emergency.waiting[name]; {
		case err == nil:
			u.c.count.emergencies++
		case known != nil:
			known.written, known.due = false, e.now()+emergencyRetry
		}
	}
	e.mu.Unlock()
	if err != nil {
		e.log.ErrorContext(ctx, "EMERGENCY: dead letters can be stored neither in the broker nor in the emergency file",
			"file", e.emergency.File,
			"letters", len(due), "error", err)
		return
	}
	for _, u := range due {
		e.logLine(ctx, logEmergency, u.c, u.d, "file", e.emergency.File, "error", u.err)
		if e.hooks.Emergency != nil {
			e.hooks.Emergency(ctx, ferry.Event{Topic: u.c.topic, Group: u.c.group, Instance: e.instance, Delivery: u.d,
				Outcome: driver.Dead, Err: u.err})
		}
	}
}

// entry is the dead letter as the broker would show it. The time is ours: the broker has given none.
func (u unburied) entry() driver.Entry {
	f := u.failure
	f.At, f.Instance, f.Attempt = time.Now(), u.c.e.instance, u.d.Attempt
	dead := &driver.DeadLetter{
		Message: u.d.Message, Attempts: u.d.Attempt, Deliveries: u.d.Deliveries, History: driver.AppendFailure(nil, f),
		Origin: driver.Origin{Topic: u.c.topic, Group: u.c.group, Ref: u.d.Ref, Instance: u.c.e.instance},
	}
	dead.Bury(dead.History[0])
	return driver.Entry{Message: u.d.Message, Ref: u.d.Ref, Group: u.c.group, State: driver.StateDead, Dead: dead}
}
