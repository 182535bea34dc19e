package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/schedule"
)

const schedulePutLong = `Makes a schedule, or changes the one of that name at once. Of one that is there, what is not
given stays as it is: its body, its zone, its delay, whether it is paused. Headers that are given take the place of
all. --replace keeps nothing.

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
	unique      string
	uniqueFor   time.Duration
	maxAttempts int
	replace     bool
}

func newSchedulePut(p process) *cobra.Command {
	var o schedulePut
	c := &cobra.Command{Use: "put NAME SPEC TOPIC [BODY]", Short: "Make a schedule, or change one", Long: schedulePutLong,
		Example: `  ferry schedule put daily-report '0 3 * * *' reports '{"kind":"daily"}' --zone Europe/Berlin --missed once
  ferry schedule put daily-report '0 4 * * *' reports            an hour later, and all else as it is
  ferry schedule put poll '*/30 * * * * *' polls --jitter 5s --ttl 1m
  ferry schedule put launch '@at 2030-01-31T08:00:00Z' mails - < mail.json`}
	r := newRemote(p, c)
	r.begins = true
	o.flags(c.Flags())
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.change(c.Flags(), args, fresh()); err != nil {
			return err
		}
		return r.schedules(c.Context(),
			func(sc *schedule.Scheduler) error { return o.put(c.Context(), r, sc, c.Flags(), args) })
	}
	return c
}

// fresh returns a schedule of which nothing is said yet.
func fresh() *schedule.Schedule {
	return &schedule.Schedule{Missed: schedule.Once, Message: &driver.Message{}}
}

// put changes the schedule that is there, or makes one.
func (o schedulePut) put(ctx context.Context, r *remote, sc *schedule.Scheduler, f *pflag.FlagSet,
	args []string) error {
	before, err := sc.Get(ctx, args[0])
	s := fresh()
	switch {
	case err == nil && !o.replace:
		*s = before.Schedule
		s.Message = s.Message.Clone()
		if kept := o.kept(f, args, s); len(kept) > 0 {
			r.notef("kept of schedule %s: %s; --replace keeps nothing", s.Name, strings.Join(kept, ", "))
		}
	case err != nil && !errors.Is(err, driver.ErrNotFound) && !errors.Is(err,
		driver.ErrInvalid): // what cannot be read is put anew
		return err
	}
	if err := o.change(f, args, s); err != nil {
		return err
	}
	if f.Changed("dedup-window") && s.Message.DedupID == "" {
		return usage("--dedup-window is given without --dedup", "give both, or none")
	}
	if f.Changed("unique-for") && s.Message.Unique == nil {
		return usage("--unique-for is given without --unique", "give both, or none")
	}
	body := s.Message.Body
	if len(args) > 3 {
		if body, err = bodyOf(ctx, r.process, args[3]); err != nil {
			return err
		}
	}
	s.Message = withBody(s.Message, body)
	return r.putSchedule(ctx, sc, *s, before.Revision)
}

// bodyOf returns the body that an argument gives.
func bodyOf(ctx context.Context, p process, arg string) ([]byte, error) {
	if arg == "-" {
		return readBody(patient{ctx, p.in}, driver.MaxValue)
	}
	return []byte(arg), nil
}

// kept returns what the command line does not give of what a schedule has.
func (o schedulePut) kept(f *pflag.FlagSet, args []string, s *schedule.Schedule) (names []string) {
	m := s.Message
	for _, k := range []struct {
		name  string
		there bool
	}{
		{"body", len(m.Body) > 0 && len(args) < 4}, {"zone", s.Zone != ""}, {"missed", s.Missed != schedule.Once},
		{"until", !s.Until.IsZero()},
		{"jitter", s.Jitter != 0}, {"paused", s.Paused}, {"key", m.Key != ""}, {"header", len(m.Headers) > 0},
		{"priority", m.Priority != driver.Normal},
		{"delay", m.Delay != 0}, {"ttl", m.TTL != 0}, {"dedup", m.DedupID != ""}, {"unique", m.Unique != nil},
		{"max-attempts", m.MaxAttempts != 0}, {"retry policy", m.Retry != nil},
	} {
		if k.there && !f.Changed(k.name) {
			names = append(names, k.name)
		}
	}
	return names
}

// change sets what the command line gives, but for the body. Of the rest s keeps its own.
func (o schedulePut) change(f *pflag.FlagSet, args []string, s *schedule.Schedule) (err error) {
	s.Name, s.Spec = args[0], args[1]
	m := s.Message
	m.Topic = args[2]
	for name, set := range map[string]func(){
		"zone":         func() { s.Zone = o.zone },
		"missed":       func() { s.Missed = schedule.Missed(o.missed) },
		"jitter":       func() { s.Jitter = o.jitter },
		"paused":       func() { s.Paused = o.paused },
		"delay":        func() { m.Delay = o.delay },
		"ttl":          func() { m.TTL = o.ttl },
		"dedup":        func() { m.DedupID = o.dedup },
		"dedup-window": func() { m.DedupWindow = o.dedupWindow },
		"max-attempts": func() { m.MaxAttempts = o.maxAttempts },
		"header":       func() { m.Headers = nil },
	} {
		if f.Changed(name) {
			set()
		}
	}
	if m.DedupID != "" && m.DedupWindow == 0 {
		m.DedupWindow = o.dedupWindow
	}
	m.Unique = o.uniqueOf(f, m.Unique)
	if o.delay < 0 {
		return negativeDelay("--delay", o.delay)
	}
	if f.Changed("until") {
		if s.Until, err = optionalTime(o.until); err != nil {
			return err
		}
	}
	if len(args) > 3 {
		m.ContentType = "" // that of the body that is given
	}
	return o.content.apply(f, m)
}

// uniqueOf returns what a message asks to be unique by, of what it asked before.
func (o schedulePut) uniqueOf(f *pflag.FlagSet, before *driver.Unique) *driver.Unique {
	u := driver.Unique{TTL: o.uniqueFor}
	if before != nil {
		u = *before
	}
	if f.Changed("unique") {
		u.ID = o.unique
	}
	if f.Changed("unique-for") {
		u.TTL = o.uniqueFor
	}
	if u.ID == "" {
		return nil
	}
	return &u
}

// optionalTime reads a time; nothing is none.
func optionalTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	return parseTime(text)
}

func (o *schedulePut) flags(f *pflag.FlagSet) {
	o.content.add(f)
	f.StringVar(&o.zone, "zone", "", "time zone of the spec, Europe/Berlin for example (default: UTC)")
	f.StringVar(&o.missed, "missed", string(schedule.Once), "ticks at which nobody ran schedules: once, skip or all "+
		"(the newest 100)")
	f.StringVar(&o.until, "until", "", "the last time it may tick: 2026-01-31T15:04:05Z, or '2026-01-31 15:04' in local "+
		"time")
	f.DurationVar(&o.jitter, "jitter", 0, "each tick fires up to so much later")
	f.BoolVar(&o.paused, "paused", false, "it does not tick until it is resumed")
	f.DurationVar(&o.delay, "delay", 0, "the message is due this long after the tick")
	f.DurationVar(&o.ttl, "ttl", 0, "the message is removed this long after the tick if it is not handled by then "+
		"(default: never)")
	f.StringVar(&o.dedup, "dedup", "", "publishes with the same text here, within --dedup-window, are one message")
	f.DurationVar(&o.dedupWindow, "dedup-window", 10*time.Minute, "how long --dedup is remembered, up to 168h")
	f.StringVar(&o.unique, "unique", "", "a tick passes while a message with the same text here is not settled")
	f.DurationVar(&o.uniqueFor, "unique-for", time.Hour, "how long --unique holds at most, longer than handling takes")
	f.IntVar(&o.maxAttempts, "max-attempts", 0, "how often handlers try the message; 2147483647: without end (default: "+
		"as they are set up)")
	f.BoolVar(&o.replace, "replace", false, "keep nothing of a schedule that is there: what is not given is as if it "+
		"were new")
	onlyOnCommandLine(f, "zone", "missed", "until", "jitter", "paused", "delay", "ttl", "dedup", "dedup-window", "unique",
		"unique-for", "max-attempts", "replace")
}

// putSchedule puts a schedule in the place of one of that revision, and says whether it changed.
func (r *remote) putSchedule(ctx context.Context, sc *schedule.Scheduler, s schedule.Schedule, before uint64) error {
	if err := sc.Put(ctx, s); err != nil {
		return err
	}
	st, err := sc.Get(ctx, s.Name)
	if err != nil {
		return err
	}
	done := scheduleChange{Schedule: s.Name, Result: "put", Next: jsontime.At(st.Next)}
	if st.Revision == before {
		done.Result = "unchanged"
	}
	return r.didSchedule(done)
}
