package periodic

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Spans of a measurement.
type Spans struct {
	Quiet  time.Duration // nothing is killed
	Killed time.Duration // the process is killed every so often
	Every  time.Duration
	Settle time.Duration // after the last kill, until what is not handled is missed
}

// Default takes about a minute and a half for a system.
var Default = Spans{Quiet: 30 * time.Second, Killed: 40 * time.Second, Every: 2 * time.Second, Settle: 15 * time.Second}

// warm is what a system has to begin.
const warm = 3 * time.Second

// Result is what was measured of a system.
type Result struct {
	System   string   `json:"system"`
	Settings string   `json:"settings"`
	Quiet    Outcome  `json:"quiet"`
	Killed   *Outcome `json:"killed,omitempty"`
	Kills    int      `json:"kills,omitempty"`
}

// Measure runs a system in processes of their own, which command makes of where its things are and of the path of a
// journal.
func Measure(ctx context.Context, s System, sp Spans, command func(ctx context.Context, where,
	journal string) *exec.Cmd) (Result, error) {
	r := Result{System: s.Name, Settings: s.Settings}
	dir, err := os.MkdirTemp("", "bench-journal-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	where, stop, err := s.Start()
	if err != nil {
		return r, err
	}
	journal := filepath.Join(dir, "journal")
	run := func(ctx context.Context, d time.Duration) error { return runFor(command(ctx, where, journal), d) }
	err = r.measure(ctx, s, sp, journal, run)
	return r, errors.Join(err, stop())
}

func (r *Result) measure(ctx context.Context, s System, sp Spans, journal string,
	run func(context.Context, time.Duration) error) error {
	begun := time.Now()
	if err := run(ctx, warm+sp.Quiet+time.Second); err != nil {
		return err
	}
	from := begun.Add(warm).Truncate(time.Second).Add(time.Second)
	var err error
	if r.Quiet, err = counted(journal, from, from.Add(sp.Quiet-time.Second)); err != nil || !s.Mortal {
		return err
	}
	from = time.Now().Truncate(time.Second).Add(time.Second)
	end := from.Add(sp.Killed)
	for time.Now().Before(end) {
		if err := run(ctx, sp.Every); err != nil {
			return err
		}
		r.Kills++
	}
	if err := run(ctx, sp.Settle); err != nil {
		return err
	}
	killed, err := counted(journal, from, end)
	r.Killed = &killed
	return err
}

// runFor runs a process for so long, and kills it.
func runFor(c *exec.Cmd, d time.Duration) error {
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		return errors.Join(errors.New("it ended by itself"), err)
	case <-time.After(d):
		err := c.Process.Kill()
		<-ended
		return err
	}
}

func counted(journal string, from, to time.Time) (Outcome, error) {
	f, err := os.Open(journal)
	if err != nil {
		return Outcome{}, err
	}
	defer func() { _ = f.Close() }()
	return Count(f, from, to)
}
