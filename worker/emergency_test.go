package worker_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/letterjson"
	"github.com/ferrymq/ferry/worker"
)

// refuseDead lets everything through but dead letters.
func refuseDead(s []driver.Settlement) error {
	for _, one := range s {
		if one.Outcome == driver.Dead {
			return driver.NewError(ferry.ErrNotApplied, "the disk is full", "", nil)
		}
	}
	return nil
}

// emergencyRig is a broker that takes no dead letters, and a worker with an emergency file.
func emergencyRig(t *testing.T, f func(r *rig, d *faulty, w *worker.Worker, file string, calls *journal)) {
	t.Helper()
	t.Parallel()
	file := filepath.Join(t.TempDir(), "emergency.ndjson")
	synctest.Test(t, func(t *testing.T) {
		calls := new(journal)
		d := &faulty{settle: refuseDead}
		r := newRig(t, func(inner driver.Driver) driver.Driver { d.Driver = inner; return d },
			ferry.Hooks{Emergency: func(_ context.Context, e ferry.Event) {
				calls.add("%s %s %v", e.Delivery.ID, e.Outcome, e.Err != nil)
			}})
		w := worker.New(r.broker, worker.Options{Emergency: worker.Emergency{File: file, After: 30 * time.Second}})
		worker.Handle(w, topic, func(context.Context, *ferry.Msg[[]byte]) error {
			return worker.Fatal(errors.New("no such user"))
		})
		f(r, d, w, file, calls)
	})
}

func lines(t *testing.T, file string) []letterjson.Record {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var all []letterjson.Record
	for line := range bytes.Lines(text) {
		r, err := letterjson.Decode(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, r)
	}
	return all
}

// A dead letter that the broker does not take is never acknowledged; after a time it is in the file too, once, and when
// the broker takes it in the end it is a dead letter, once.
func TestADeadLetterThatCannotBeStored(t *testing.T) {
	emergencyRig(t, func(r *rig, d *faulty, w *worker.Worker, file string, calls *journal) {
		t := r.t
		stop := start(t, w)
		r.publish(topic, []string{"bad"}, ferry.Header("trace", "\xff"))
		pause(29 * time.Second)
		if got := lines(t, file); len(got) != 0 || len(calls.all()) != 0 {
			t.Errorf("written early: %v", got)
		}
		pause(2 * time.Second)
		got := lines(t, file)
		if len(got) != 1 || got[0].Dead.Reason != driver.ReasonFatal || got[0].Dead.Error != "no such user" ||
			got[0].State != driver.StateDead || got[0].Group != "default" {
			t.Fatalf("%+v", got)
		}
		m, err := got[0].Message()
		if err != nil || string(m.Body) != "bad" || m.Headers["trace"] != "\xff" || m.ID == "" {
			t.Errorf("%+v, %v", m, err)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		equal(t, calls.all(), []string{m.ID + " dead true"})
		pause(10 * time.Minute)
		if g := r.group(topic); g.Inflight != 1 || g.Acked != 0 || g.Dead != 0 || g.Redelivered != 0 {
			t.Errorf("%+v", g)
		}
		if s := w.Stats().Consumers[0]; s.Emergencies != 1 {
			t.Errorf("%+v", s)
		}
		d.set(func() { d.settle = nil })
		pause(time.Minute)
		if g := r.group(topic); g.Dead != 1 || g.Inflight != 0 {
			t.Errorf("%+v", g)
		}
		if got := lines(t, file); len(got) != 1 {
			t.Errorf("%d lines", len(got))
		}
		mustStop(t, stop)
	})
}

// One that is stored in time leaves no trace in the file.
func TestADeadLetterThatIsStoredLate(t *testing.T) {
	emergencyRig(t, func(r *rig, d *faulty, w *worker.Worker, file string, calls *journal) {
		stop := start(r.t, w)
		r.publish(topic, []string{"bad"})
		pause(20 * time.Second)
		d.set(func() { d.settle = nil })
		pause(time.Hour)
		if got := lines(r.t, file); len(got) != 0 || r.group(topic).Dead != 1 || len(calls.all()) != 0 {
			r.t.Errorf("%v %+v", got, r.group(topic))
		}
		mustStop(r.t, stop)
	})
}

// While the broker is away altogether the lease is lost, and the letter is in the file all the same.
func TestADeadLetterWhileTheBrokerIsAway(t *testing.T) {
	emergencyRig(t, func(r *rig, d *faulty, w *worker.Worker, file string, _ *journal) {
		stop := start(r.t, w)
		r.publish(topic, []string{"bad"})
		synctest.Wait()
		d.dead()
		pause(time.Minute)
		if got := lines(r.t, file); len(got) != 1 {
			r.t.Errorf("%v", got)
		}
		d.revive()
		pause(time.Minute)
		if g := r.group(topic); g.Dead != 1 || g.Acked != 0 {
			r.t.Errorf("%+v", g)
		}
		mustStop(r.t, stop)
	})
}

// A line that was cut off by a crash harms no other, and a file that cannot be written is tried again.
func TestAnEmergencyFileWithTrouble(t *testing.T) {
	emergencyRig(t, func(r *rig, _ *faulty, w *worker.Worker, file string, calls *journal) {
		t := r.t
		if err := os.Mkdir(file, 0o700); err != nil {
			t.Fatal(err)
		}
		stop := start(t, w)
		r.publish(topic, []string{"bad"})
		pause(time.Minute)
		if len(calls.all()) != 0 {
			t.Error("a directory was written to")
		}
		if err := errors.Join(os.Remove(file), os.WriteFile(file, []byte(`{"id":"cut o`), 0o600)); err != nil {
			t.Fatal(err)
		}
		pause(time.Minute)
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), "\n") != 2 || len(calls.all()) != 1 {
			t.Errorf("%q, %v, %v", text, err, calls.all())
		}
		_ = stop()
	})
}

func TestBadEmergencyOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []worker.Emergency{{After: -1, File: "x"}, {After: time.Second},
		{File: filepath.Join(t.TempDir(), "missing", "file")}} {
		r := newRig(t, nil, ferry.Hooks{})
		w := worker.New(r.broker, worker.Options{Emergency: o})
		worker.Handle(w, topic, func(context.Context, *ferry.Msg[[]byte]) error { return nil })
		if err := w.Run(t.Context()); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
