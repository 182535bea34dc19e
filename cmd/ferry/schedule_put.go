package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/schedule"
)

const schedulePutLong = `Makes a schedule, or changes the one of that name at once. What is there already in the same form stays as it is.

SPEC is five cron fields (minute, hour, day of month, month, day of week), or six with seconds before them; or @hourly,
@daily, @weekly, @monthly, @yearly, '@every 90s', '@at 2030-01-31T08:00:00Z'. BODY may be - for standard input.`

// schedulePut are the flags of ferry schedule put.
type schedulePut struct {
	content     contentFlags
	zone        string
	missed      string
	until       string
	jitter      time.Duration
	paused      bool
	delay       time.Duration
	ttl         time.Duration
	dedup       string
	dedupWindow time.Duration
	maxAttempts int
}

func newSchedulePut(p process) *cobra.Command {
	var o schedulePut
	c := &cobra.Command{Use: "put NAME SPEC TOPIC [BODY]", Short: "Make a schedule, or change one", Long: schedulePutLong,
		Example: `  ferry schedule put daily-report '0 3 * * *' reports '{"kind":"daily"}' --zone Europe/Berlin --missed once
  ferry schedule put poll '*/30 * * * * *' polls --jitter 5s --ttl 1m
  ferry schedule put launch '@at 2030-01-31T08:00:00Z' mails - < mail.json`}
	r := newRemote(p, c)
	r.begins = true
	o.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		s := schedule.Schedule{Name: args[0], Spec: args[1], Zone: o.zone, Missed: schedule.Missed(o.missed), Jitter: o.jitter, Paused: o.paused}
		if o.until != "" {
			var err error
			if s.Until, err = parseTime(o.until); err != nil {
				return err
			}
		}
		m := &driver.Message{Topic: args[2], Delay: o.delay, TTL: o.ttl, DedupID: o.dedup, DedupWindow: o.dedupWindow, MaxAttempts: o.maxAttempts}
		if err := o.content.apply(c.Flags(), m); err != nil {
			return err
		}
		var body []byte
		if len(args) > 3 {
			body = []byte(args[3])
		}
		return r.schedules(c.Context(), func(sc *schedule.Scheduler) (err error) {
			if string(body) == "-" {
				if body, err = readBody(patient{c.Context(), p.in}, driver.MaxValue); err != nil {
					return err
				}
			}
			s.Message = withBody(m, body)
			return r.putSchedule(c.Context(), sc, s)
		})
	}
	return c
}

func (o *schedulePut) flags(f *pflag.FlagSet) {
	o.content.add(f)
	f.StringVar(&o.zone, "zone", "", "time zone of the spec, Europe/Berlin for example (default: UTC)")
	f.StringVar(&o.missed, "missed", string(schedule.Once), "ticks at which nobody ran schedules: once, skip or all (the newest 100)")
	f.StringVar(&o.until, "until", "", "the last time it may tick: 2026-01-31T15:04:05Z, or '2026-01-31 15:04' in local time")
	f.DurationVar(&o.jitter, "jitter", 0, "each tick fires up to so much later")
	f.BoolVar(&o.paused, "paused", false, "it does not tick until it is resumed")
	f.DurationVar(&o.delay, "delay", 0, "the message is due this long after the tick")
	f.DurationVar(&o.ttl, "ttl", 0, "the message is removed this long after the tick if it is not handled by then (default: never)")
	f.StringVar(&o.dedup, "dedup", "", "publishes with the same text here, within --dedup-window, are one message")
	f.DurationVar(&o.dedupWindow, "dedup-window", 10*time.Minute, "how long --dedup is remembered, up to 168h")
	f.IntVar(&o.maxAttempts, "max-attempts", 0, "how often handlers try the message (default: as they are set up)")
	onlyOnCommandLine(f, "zone", "missed", "until", "jitter", "paused", "delay", "ttl", "dedup", "max-attempts")
}

func (r *remote) putSchedule(ctx context.Context, sc *schedule.Scheduler, s schedule.Schedule) error {
	before, _ := sc.Get(ctx, s.Name) // one that is not there, or not readable, has another revision
	if err := sc.Put(ctx, s); err != nil {
		return err
	}
	st, err := sc.Get(ctx, s.Name)
	if err != nil {
		return err
	}
	done := scheduleChange{Schedule: s.Name, Result: "put", Next: jsontime.At(st.Next)}
	if st.Revision == before.Revision {
		done.Result = "unchanged"
	}
	return r.didSchedule(done)
}
