package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/letterjson"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/spool/spooldisk"
)

// spoolReplay is what a replay did.
type spoolReplay struct {
	Published  uint64 `json:"published"`
	Duplicates uint64 `json:"duplicates,omitempty"`
	Expired    uint64 `json:"expired"`
	Buried     uint64 `json:"buried"` // refused by the broker for good
}

func newSpoolReplay(p process) *cobra.Command {
	c := &cobra.Command{Use: "replay DIR|FILE", Short: "Publish what waits, an export or an emergency file to the broker",
		Long: `Publishes what waits in the directories that no process uses to the broker, in order of keys, as the program
itself would have; what is published leaves the spool. --dead makes its dead letters wait again first.

Of a file all lines are checked before the first is published; its messages have the ids they had, so that
a broker that remembers one does not store it again. The file is not changed.

Bodies that the program compressed or encrypted are published as they are: no key is needed.`,
		Example: "  ferry spool replay ./spool --broker redis://localhost:6379\n  ferry spool replay ./spool --dead\n  " +
			"ferry spool replay spool-20260131.jsonl"}
	r := newRemote(p, c)
	var dead bool
	c.Flags().BoolVar(&dead, "dead", false, "also the dead letters of the spool")
	onlyOnCommandLine(c.Flags(), "dead")
	r.begins = true
	c.RunE = func(c *cobra.Command, args []string) error {
		info, err := os.Stat(args[0])
		if err != nil {
			return driver.NewError(driver.ErrNotFound, fmt.Sprintf("%s cannot be read", printable(args[0])),
				"give the directory of a spool, an export or an emergency file", err)
		}
		return r.with(c.Context(), func(s session) error {
			if info.IsDir() {
				return s.replaySpool(c.Context(), args[0], dead)
			}
			return s.replayFile(c.Context(), args[0])
		})
	}
	return c
}

// replaySpool drains the directories that nobody uses.
func (s session) replaySpool(ctx context.Context, root string, dead bool) error {
	free, busy := 0, 0
	err := eachSlot(ctx, root, func(slot spoolSlot) error {
		if slot.store == nil {
			busy++
			return nil
		}
		free++
		if !dead {
			return nil
		}
		return reviveSpool(ctx, slot)
	})
	switch {
	case err != nil:
		return err
	case free == 0 && busy > 0:
		return failure("every directory of the spool is in use by a process"+inUse(busy),
			"these processes publish what waits by themselves")
	case free == 0:
		return s.replayed(spoolReplay{})
	}
	if names, _ := slotsOf(root); len(names) == 1 && names[0] == "." {
		return failure(fmt.Sprintf("%s is the directory of one process", root),
			"give the one above it: "+filepath.Dir(filepath.Clean(root)))
	}
	d, err := spooldisk.Open(ctx, keptOpen{s.driver}, spooldisk.Options{Root: root, Spool: spool.Options{Logger: quiet}})
	if err != nil {
		return err
	}
	err = drained(ctx, d)
	done := d.SpoolStats()
	if err = errors.Join(err, d.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return s.replayed(spoolReplay{Published: done.Drained, Expired: done.Expired, Buried: done.Buried})
}

// keptOpen leaves the broker to the session, which closes it.
type keptOpen struct{ driver.Driver }

// Close does nothing.
func (keptOpen) Close(context.Context) error { return nil }

// reviveSpool makes the dead letters of a directory wait again.
func reviveSpool(ctx context.Context, slot spoolSlot) error {
	for _, t := range slot.topics {
		ts, err := deadOf(ctx, slot.store, t.Topic)
		if err != nil {
			return err
		}
		ms := make([]driver.Move, len(ts))
		for i := range ts {
			ms[i].Target = ts[i]
		}
		if err := errors.Join(slot.store.Move(ctx, ms)...); err != nil {
			return err
		}
	}
	return nil
}

// awayFor is how long a replay waits for a broker that does not answer.
const awayFor = 10 * time.Second

// drained waits until the spool is empty, or the broker has been away for too long.
func drained(ctx context.Context, d *spool.Driver) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s := d.SpoolStats()
		switch {
		case s.Messages == 0:
			return nil
		case !s.AwaySince.IsZero() && time.Since(s.AwaySince) > awayFor:
			return failure(fmt.Sprintf("the broker does not answer; %d messages are published, %d wait", s.Drained, s.Messages),
				"look whether it runs, and run this again")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return failure(fmt.Sprintf("interrupted; %d messages are published, %d wait", s.Drained, s.Messages),
				"run this again")
		}
	}
}

func (s session) replayed(v spoolReplay) error {
	return s.one(v, func() error {
		return s.sayf("published %d messages; %d had expired, %d were refused by the broker", v.Published, v.Expired,
			v.Buried)
	})
}

// replayFile publishes the lines of an export or an emergency file.
func (s session) replayFile(ctx context.Context, name string) (err error) {
	file, closed, err := s.readTwice(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed()) }()
	most := s.driver.Capabilities().MaxBody
	if err := eachWaiting(file, most, func(*ferry.Message, bool) error { return nil }); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var done spoolReplay
	var batch []*ferry.Message
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		// not on the broker: filters have changed the bodies already
		rs, err := s.driver.Publish(ctx, batch, driver.PublishOptions{})
		for _, r := range rs {
			switch {
			case r.Err == nil && r.Duplicate:
				done.Duplicates++
			case r.Err == nil:
				done.Published++
			}
		}
		batch = batch[:0]
		return err
	}
	err = eachWaiting(file, most, func(m *ferry.Message, alive bool) error {
		if !alive {
			done.Expired++
			return nil
		}
		if batch = append(batch, m); len(batch) < 100 {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return driver.NewError(driver.ErrUnknown, fmt.Sprintf("the replay stopped after %d messages", done.Published),
			"run it again: what the broker remembers is not stored twice", err)
	}
	return s.one(done, func() error {
		return s.sayf("published %d messages; the broker knew %d, and %d had expired", done.Published, done.Duplicates,
			done.Expired)
	})
}

// maxSpoolLine bounds a line: the largest body there may be, in base64, and its metadata.
const maxSpoolLine = 256 << 20

// eachWaiting reads the messages of a file, for a broker with this limit of bodies.
func eachWaiting(r io.Reader, maxBody int, work func(m *ferry.Message, alive bool) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxSpoolLine)
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		record, err := letterjson.Decode(lines.Bytes())
		if err == nil {
			err = record.Check(time.Now())
		}
		var m *ferry.Message
		var alive bool
		if err == nil {
			m, alive, err = record.Due(time.Now())
		}
		if alive {
			err = errors.Join(driver.CheckTopic(m.Topic), m.CheckPublish(maxBody))
		}
		if err != nil {
			return driver.NewError(driver.ErrInvalid, fmt.Sprintf("line %d is no message of a spool", n),
				"mend it, or take it out; nothing of the file was published", err)
		}
		if err := work(m, alive); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return driver.NewError(driver.ErrInvalid, "the file cannot be read", "give an export or an emergency file", err)
	}
	return nil
}
