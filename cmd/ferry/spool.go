package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/letterjson"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/spool/spooldisk"
)

const spoolLong = `A spool keeps what a program publishes while its broker is away, in a directory beside the program
(?spool=DIR in the URL of the broker), and brings it to the broker by itself. These commands are for
what a program has left that does not run any more, for what the broker refused for good (dead
letters of the spool), and for emergency files. DIR is the directory of the URL; below it each
process has one of its own. What a process has open is left alone.`

const spoolExample = `  ferry spool ls /var/lib/orders/spool
  ferry spool show /var/lib/orders/spool 0198f2c4-7c1e-7b3a-9a63-5f0f6a2f9f10
  ferry spool export /var/lib/orders/spool > saved.jsonl
  ferry spool replay /var/lib/orders/spool             to --broker, in order of keys
  ferry spool replay /var/lib/orders/spool --dead      its dead letters, too
  ferry spool replay spool-20260131.jsonl              an emergency file, or an export
  ferry spool purge /var/lib/orders/spool --topic orders`

func newSpool(p process) *cobra.Command {
	c := newNoun("spool", "List, show, replay, export and purge what was published while a broker was away", spoolExample,
		newSpoolList(p), newSpoolShow(p), newSpoolReplay(p), newSpoolExport(p), newSpoolPurge(p))
	c.Long = spoolLong
	return c
}

// spoolCommand is a command on the directory of a spool, which needs no broker.
func spoolCommand(p process, c *cobra.Command, work func(ctx context.Context, r *remote,
	args []string) error) *cobra.Command {
	r := &remote{process: p}
	c.Args = asUsed
	c.Flags().StringVar(&r.format, "output", formatTable, "table, json or ndjson")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := oneOf("output", r.format, formatTable, formatJSON, formatNDJSON); err != nil {
			return err
		}
		return work(c.Context(), r, args)
	}
	return c
}

// spoolSlot is one directory of a process.
type spoolSlot struct {
	name   string
	store  *disk.Driver // nil: in use
	owner  int
	topics []driver.TopicStats
}

// eachSlot opens the directories below root one after the other. One that a process uses has no store.
func eachSlot(ctx context.Context, root string, work func(s spoolSlot) error) error {
	names, err := slotsOf(root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := withSlot(ctx, root, name, work); err != nil {
			return err
		}
	}
	return nil
}

// slotsOf returns the directories below root, or root itself if it is a store.
func slotsOf(root string) ([]string, error) {
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return nil, driver.NewError(driver.ErrNotFound, fmt.Sprintf("%s is no directory", root),
			"give the directory that spool= names in the URL of the broker", nil)
	}
	if _, err := os.Stat(filepath.Join(root, "FERRY")); err == nil {
		return []string{"."}, nil
	}
	names, err := spooldisk.Slots(root)
	if err != nil || len(names) > 0 {
		return names, err
	}
	others, err := os.ReadDir(root)
	if err == nil && len(others) > 0 { // not "the spool is empty", which somebody would believe
		err = driver.NewError(driver.ErrNotFound, fmt.Sprintf("%s is no spool: what is in it belongs to none", root),
			"give the directory that spool= names in the URL of the broker", nil)
	}
	return nil, err
}

func withSlot(ctx context.Context, root, name string, work func(s spoolSlot) error) (err error) {
	dir := filepath.Join(root, name)
	s := spoolSlot{name: name, owner: spooldisk.Owner(dir)}
	s.store, err = disk.New(ctx, disk.Options{Dir: dir, MustExist: true, Logger: quiet})
	if errors.Is(err, driver.ErrConflict) {
		s.store = nil
		return work(s)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close(context.WithoutCancel(ctx))) }()
	infos, err := s.store.Topics(ctx)
	if err != nil {
		return err
	}
	for _, info := range infos {
		stats, err := s.store.Stats(ctx, info.Topic)
		if err != nil {
			return err
		}
		s.topics = append(s.topics, stats)
	}
	return work(s)
}

// spoolView is what waits of a topic in the directory of a process. Its JSON form is stable.
type spoolView struct {
	Directory string            `json:"directory"`
	InUseBy   int               `json:"in_use_by,omitempty"` // a pid; nothing else is known then
	Topic     string            `json:"topic,omitempty"`
	Messages  int64             `json:"messages"`
	Bytes     int64             `json:"bytes"`
	Dead      int64             `json:"dead"`
	Oldest    jsontime.Duration `json:"oldest,omitempty"`
}

var spoolColumns = []column[spoolView]{
	{title: "directory", cell: func(v spoolView) any { return v.Directory }},
	{title: "topic", width: 40, cell: func(v spoolView) any {
		if v.InUseBy > 0 {
			return fmt.Sprintf("(in use by process %d)", v.InUseBy)
		}
		return v.Topic
	}},
	{title: "messages", number: true, cell: func(v spoolView) any { return v.Messages }},
	{title: "bytes", number: true, cell: func(v spoolView) any { return v.Bytes }},
	{title: "dead", number: true, cell: func(v spoolView) any { return v.Dead }},
	{title: "oldest", number: true, cell: func(v spoolView) any { return time.Duration(v.Oldest).Round(time.Second) }},
}

func newSpoolList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls DIR", Short: "List what waits, by directory and topic",
		Example: "  ferry spool ls /var/lib/orders/spool\n  ferry spool ls ./spool --output json"}
	return spoolCommand(p, c, func(ctx context.Context, r *remote, args []string) error {
		l := newListing(r, spoolColumns)
		err := eachSlot(ctx, args[0], func(s spoolSlot) error {
			if s.store == nil {
				return l.add(spoolView{Directory: s.name, InUseBy: s.owner})
			}
			for _, t := range s.topics {
				v := spoolView{Directory: s.name, Topic: t.Topic, Messages: t.Messages, Bytes: t.Bytes}
				for _, g := range t.Groups {
					v.Dead += g.Dead
					v.Oldest = max(v.Oldest, jsontime.Duration(g.Oldest))
				}
				if v.Messages+v.Dead == 0 {
					continue
				}
				if err := l.add(v); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return l.end("Nothing waits: the spool is empty.")
	})
}

// spooledView is a message of a spool in the form of an export. What cannot be read has its bytes.
func spooledView(topic string, e driver.Entry) entryView {
	record, err := spool.Decode(e.Body)
	if err != nil {
		return entryView{letterjson.Of(topic, e)}
	}
	v := entryView{letterjson.Waiting(record.Message, e.PublishedAt.Add(-record.Age))}
	v.PublishedAt = jsontime.At(e.PublishedAt.Add(-record.Age)) // when it was accepted
	if e.Dead != nil {
		v.Dead, v.History = letterjson.Of(topic, e).Dead, letterjson.Of(topic, e).History
	}
	return v
}

func newSpoolShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show DIR ID", Short: "Show everything about one message",
		Example: "  ferry spool show ./spool 0198f2c4-7c1e-7b3a-9a63-5f0f6a2f9f10"}
	return spoolCommand(p, c, func(ctx context.Context, r *remote, args []string) error {
		found, busy := false, 0
		err := eachSlot(ctx, args[0], func(s spoolSlot) error {
			if s.store == nil {
				busy++
				return nil
			}
			for _, t := range s.topics {
				entries, err := s.store.Get(ctx, driver.Target{Topic: t.Topic, ID: args[1]})
				if errors.Is(err, driver.ErrNotFound) {
					continue
				}
				if err != nil {
					return err
				}
				found = true
				v := spooledView(t.Topic, entries[0])
				if err := r.one(v, func() error { return r.show(v) }); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil && !found {
			return driver.NewError(driver.ErrNotFound, fmt.Sprintf("no message %s is in the spool", printable(args[1])),
				"see 'ferry spool export "+args[0]+"'"+inUse(busy), nil)
		}
		return err
	})
}

// inUse is added to a hint where not everything could be looked at.
func inUse(busy int) string {
	if busy == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of its directories are in use by processes", busy)
}

// browseSpool calls with each message of a topic in one of some states.
func browseSpool(ctx context.Context, d driver.Driver, topic string, states []driver.State,
	work func(e driver.Entry) error) error {
	for _, state := range states {
		q := driver.Query{Topic: topic, Group: driver.DefaultGroup, State: state, Limit: driver.MaxLimit}
		for {
			page, err := d.Browse(ctx, q)
			if err != nil {
				return err
			}
			for _, e := range page.Entries {
				if err := work(e); err != nil {
					return err
				}
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				break
			}
		}
	}
	return nil
}

func newSpoolExport(p process) *cobra.Command {
	c := &cobra.Command{Use: "export DIR", Short: "Write what waits, and the dead letters, to standard output",
		Long: "Writes messages whole, one JSON object on each line, in the form of an emergency file: 'ferry spool " +
			"replay FILE' publishes them.\nNothing is removed.",
		Example: "  ferry spool export ./spool > saved.jsonl\n  ferry spool export ./spool --topic orders"}
	var topic string
	c.Flags().StringVar(&topic, "topic", "", "only this topic")
	onlyOnCommandLine(c.Flags(), "topic")
	return spoolCommand(p, c, func(ctx context.Context, r *remote, args []string) error {
		n, busy := 0, 0
		w := tame{r.out, isTerminal(r.out)}
		err := eachSlot(ctx, args[0], func(s spoolSlot) error {
			if s.store == nil {
				busy++
			}
			for _, t := range s.topics {
				if topic != "" && t.Topic != topic {
					continue
				}
				err := browseSpool(ctx, s.store, t.Topic, []driver.State{driver.StateWaiting, driver.StateReady, driver.StateDead},
					func(e driver.Entry) error {
						line, err := spooledView(t.Topic, e).Append(nil)
						if err != nil {
							return err
						}
						n++
						_, err = w.Write(line)
						return err
					})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			r.notef("%d messages written%s", n, inUse(busy))
		}
		return err
	})
}

// spoolChange is what a purge did.
type spoolChange struct {
	Removed int `json:"removed"`
}

func newSpoolPurge(p process) *cobra.Command {
	c := &cobra.Command{Use: "purge DIR", Short: "Remove what waits, or the dead letters; it never gets to a broker then",
		Example: "  ferry spool purge ./spool --topic orders\n  ferry spool purge ./spool --dead --yes"}
	var topic string
	var dead, yes bool
	c.Flags().StringVar(&topic, "topic", "", "only this topic")
	c.Flags().BoolVar(&dead, "dead", false, "the dead letters, not what waits")
	onlyOnCommandLine(c.Flags(), "topic", "dead")
	yesFlag(c.Flags(), &yes)
	return spoolCommand(p, c, func(ctx context.Context, r *remote, args []string) error {
		what := "what waits"
		if dead {
			what = "the dead letters"
		}
		if topic != "" {
			what += " of topic " + topic
		}
		if err := r.confirm(ctx, yes, fmt.Sprintf("removes %s in %s for good", what, args[0]), ""); err != nil {
			return err
		}
		done, busy := spoolChange{}, 0
		err := eachSlot(ctx, args[0], func(s spoolSlot) error {
			if s.store == nil {
				busy++
			}
			for _, t := range s.topics {
				if topic != "" && t.Topic != topic {
					continue
				}
				n, err := purgeSpool(ctx, s.store, t.Topic, dead)
				done.Removed += n
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		return r.one(done, func() error { return r.sayf("removed %d messages%s", done.Removed, inUse(busy)) })
	})
}

func purgeSpool(ctx context.Context, d driver.Driver, topic string, dead bool) (int, error) {
	if !dead {
		return d.Purge(ctx, topic, "")
	}
	ts, err := deadOf(ctx, d, topic)
	if err != nil {
		return 0, err
	}
	return len(ts), errors.Join(d.Delete(ctx, ts)...)
}

// deadOf returns the dead letters of a topic of a spool.
func deadOf(ctx context.Context, d driver.Driver, topic string) (ts []driver.Target, err error) {
	err = browseSpool(ctx, d, topic, []driver.State{driver.StateDead}, func(e driver.Entry) error {
		ts = append(ts, driver.Target{Topic: topic, Group: driver.DefaultGroup, Ref: e.Ref})
		return nil
	})
	return ts, err
}
