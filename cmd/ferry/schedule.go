package main

import (
	"context"
	"time"
	_ "time/tzdata" // zones of schedules, wherever the command runs

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/schedule"
)

const scheduleLong = `Schedules publish a message at each tick: every night at three, every ten seconds, once at noon.
They lie in the broker; any program that runs a schedule.Scheduler takes their ticks. While none does, nothing is
published, and what is missed then is up to --missed.`

const scheduleExample = `  ferry schedule put daily-report '0 3 * * *' reports '{"kind":"daily"}' --zone Europe/Berlin
  ferry schedule put heartbeat '@every 10s' beats --missed skip
  ferry schedule put launch '@at 2030-01-31T08:00:00Z' mails '{"to":"all"}'
  ferry schedule ls
  ferry schedule show daily-report
  ferry schedule pause daily-report                    and resume
  ferry schedule trigger daily-report                  now, once more
  ferry schedule rm daily-report
  ferry schedule next '0 3 * * MON-FRI' --zone Asia/Shanghai`

func newSchedule(p process) *cobra.Command {
	c := newNoun("schedule", "List, show, put, pause, trigger and remove schedules", scheduleExample, newScheduleList(p),
		newScheduleShow(p), newSchedulePut(p),
		newScheduleRemove(p), newSchedulePause(p, true), newSchedulePause(p, false), newScheduleTrigger(p),
		newScheduleNext(p))
	c.Long = scheduleLong
	return c
}

// schedules opens the broker, and lets work use its schedules.
func (r *remote) schedules(ctx context.Context, work func(s *schedule.Scheduler) error) error {
	return r.with(ctx, func(open session) error {
		s, err := schedule.New(open.broker, schedule.Options{})
		if err != nil {
			return err
		}
		return work(s)
	})
}

func newScheduleList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls [PREFIX]", Short: "List schedules with their next and last tick",
		Example: "  ferry schedule ls\n  ferry schedule ls tenant-7/ --output json"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		q := schedule.Query{Limit: 1000}
		if len(args) > 0 {
			q.Prefix = args[0]
		}
		return r.schedules(c.Context(), func(s *schedule.Scheduler) error { return r.listSchedules(c.Context(), s, q) })
	}
	return c
}

func (r *remote) listSchedules(ctx context.Context, s *schedule.Scheduler, q schedule.Query) error {
	l := newListing(r, scheduleColumns)
	for {
		p, err := s.List(ctx, q)
		if err != nil {
			return err
		}
		for _, st := range p.Schedules {
			if err := l.add(viewSchedule(st)); err != nil {
				return err
			}
		}
		if q.Cursor = p.Next; p.Next == "" {
			return l.end("There are no schedules; 'ferry schedule put' makes one.")
		}
	}
}

func newScheduleShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show NAME", Short: "Show everything about one schedule, and its next ticks",
		Example: "  ferry schedule show daily-report"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.schedules(c.Context(), func(s *schedule.Scheduler) error {
			st, err := s.Get(c.Context(), args[0])
			if err != nil {
				return err
			}
			v, err := viewWithTicks(st)
			if err != nil {
				return err
			}
			return r.one(v, func() error { return r.showSchedule(v) })
		})
	}
	return c
}

func newScheduleRemove(p process) *cobra.Command {
	c := &cobra.Command{Use: "rm NAME", Short: "Remove a schedule; what it has published stays",
		Example: "  ferry schedule rm daily-report"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.schedules(c.Context(), func(s *schedule.Scheduler) error {
			if err := s.Delete(c.Context(), args[0]); err != nil {
				return err
			}
			return r.didSchedule(scheduleChange{Schedule: args[0], Result: "removed"})
		})
	}
	return c
}

func newSchedulePause(p process, paused bool) *cobra.Command {
	c := &cobra.Command{Use: "pause NAME", Short: "Stop a schedule until it is resumed",
		Example: "  ferry schedule pause daily-report"}
	done, change := "paused", (*schedule.Scheduler).Pause
	if !paused {
		c.Use, c.Short, c.Example = "resume NAME", "Let a schedule go on, from its next tick",
			"  ferry schedule resume daily-report"
		done, change = "resumed", (*schedule.Scheduler).Resume
	}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.schedules(c.Context(), func(s *schedule.Scheduler) error {
			if err := change(s, c.Context(), args[0]); err != nil {
				return err
			}
			st, err := s.Get(c.Context(), args[0])
			if err != nil {
				return err
			}
			return r.didSchedule(scheduleChange{Schedule: args[0], Result: done, Next: jsontime.At(st.Next)})
		})
	}
	return c
}

func newScheduleTrigger(p process) *cobra.Command {
	c := &cobra.Command{Use: "trigger NAME", Short: "Publish the message of a schedule now, once more",
		Long: "Publishes the message of a schedule now, once, beside its ticks, which stay as they are. A paused " +
			"schedule can be\ntriggered, too. It prints the id of the message.",
		Example: "  ferry schedule trigger daily-report"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.schedules(c.Context(), func(s *schedule.Scheduler) error {
			receipt, err := s.Trigger(c.Context(), args[0])
			if err != nil {
				return err
			}
			return r.didSchedule(scheduleChange{Schedule: args[0], Result: "triggered", Message: receipt.ID})
		})
	}
	return c
}

func newScheduleNext(p process) *cobra.Command {
	c := &cobra.Command{Use: "next SPEC", Short: "Tell when a spec ticks; needs no broker",
		Example: "  ferry schedule next '0 3 * * MON-FRI' --zone Asia/Shanghai\n  ferry schedule next '@every 90s' --count " +
			"3 --after 2026-01-31T08:00:00Z", Args: asUsed}
	r := &remote{process: p}
	var zone, after string
	var count int
	f := c.Flags()
	f.StringVar(&r.format, "output", formatTable, "table, json or ndjson")
	f.StringVar(&zone, "zone", "", "time zone of the spec, Europe/Berlin for example (default: UTC)")
	f.StringVar(&after, "after", "", "ticks after this time (default: now)")
	f.IntVar(&count, "count", 5, "how many, 1 to 1000")
	onlyOnCommandLine(f, "zone", "after", "count")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if err := oneOf("output", r.format, formatTable, formatJSON, formatNDJSON); err != nil {
			return err
		}
		if count < 1 || count > 1000 {
			return usage("--count is out of range", "use 1 to 1000")
		}
		from := time.Now()
		if after != "" {
			var err error
			if from, err = parseTime(after); err != nil {
				return err
			}
		}
		views, err := ticksOf(args[0], zone, from, count)
		if err != nil {
			return err
		}
		return list(r, tickColumns, views, "It does not tick any more.")
	}
	return c
}
