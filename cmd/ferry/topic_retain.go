package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

const retainLong = `Bounds what a topic holds in its log, by age, number of entries or bytes of memory: what is beyond
a bound goes, oldest first. What is not given stays as it is; 0 takes a bound away; without any it is only shown.

A bound waits for what some group has not settled, unless --drop-unsettled lets it go: it is then lost to that group,
and counted as dropped. What is in flight is always waited for. Consumers apply the bounds now and then, 'ferry topic
trim' at once.`

func newTopicRetain(p process) *cobra.Command {
	c := &cobra.Command{Use: "retain TOPIC",
		Short: "Bound the log of a topic by age, entries or bytes, or show its bounds", Long: retainLong,
		Example: "  ferry topic retain orders\n  ferry topic retain orders --age 72h --entries 1000000\n  ferry topic " +
			"retain orders --bytes 1073741824 --drop-unsettled"}
	r := newRemote(p, c)
	var set driver.Retention
	var yes bool
	c.Flags().DurationVar(&set.Age, "age", 0, "nothing older than this, 72h for example; 0: no bound")
	c.Flags().Int64Var(&set.Entries, "entries", 0, "at most this many entries; 0: no bound")
	c.Flags().Int64Var(&set.Bytes, "bytes", 0, "at most this much memory of the streams; 0: no bound")
	c.Flags().BoolVar(&set.DropUnsettled, "drop-unsettled", false,
		"drop what groups have not settled, instead of waiting for it")
	yesFlag(c.Flags(), &yes)
	onlyOnCommandLine(c.Flags(), retentionFlags...)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error { return s.retain(c.Context(), c.Flags(), args[0], set, yes) })
	}
	return c
}

var retentionFlags = []string{"age", "entries", "bytes", "drop-unsettled"}

// retain shows the retention of a topic, or changes what is on the command line.
func (s session) retain(ctx context.Context, f *pflag.FlagSet, topic string, set driver.Retention, yes bool) error {
	l, err := s.log(ctx, topic)
	if err != nil {
		return err
	}
	now, err := l.Retention(ctx, topic)
	if err != nil || !changesAny(f, retentionFlags...) {
		return s.showRetention(topic, now, err)
	}
	for name, change := range map[string]func(){
		"age":            func() { now.Age = set.Age },
		"entries":        func() { now.Entries = set.Entries },
		"bytes":          func() { now.Bytes = set.Bytes },
		"drop-unsettled": func() { now.DropUnsettled = set.DropUnsettled },
	} {
		if f.Changed(name) {
			change()
		}
	}
	if now.DropUnsettled {
		if err := s.confirm(ctx, yes, "let topic "+topic+" drop what its groups have not settled", topic); err != nil {
			return err
		}
	}
	return s.showRetention(topic, now, l.Retain(ctx, topic, now))
}

// retentionView is the JSON form of a retention.
type retentionView struct {
	Topic         string            `json:"topic"`
	Age           jsontime.Duration `json:"age"`
	Entries       int64             `json:"entries"`
	Bytes         int64             `json:"bytes"`
	DropUnsettled bool              `json:"drop_unsettled"`
}

func (s session) showRetention(topic string, now driver.Retention, err error) error {
	if err != nil {
		return err
	}
	v := retentionView{Topic: topic, Age: jsontime.Duration(now.Age), Entries: now.Entries, Bytes: now.Bytes,
		DropUnsettled: now.DropUnsettled}
	return s.one(v, func() error { return s.sayf("topic %s %s", topic, v) })
}

// String says what is retained.
func (v retentionView) String() string {
	var bounds []string
	if v.Age > 0 {
		bounds = append(bounds, "nothing older than "+v.Age.String())
	}
	if v.Entries > 0 {
		bounds = append(bounds, fmt.Sprintf("at most %d entries", v.Entries))
	}
	if v.Bytes > 0 {
		bounds = append(bounds, fmt.Sprintf("at most %d bytes", v.Bytes))
	}
	if len(bounds) == 0 {
		return "has no retention: what is settled goes by its setting keep"
	}
	how := "; waits for what is not settled"
	if v.DropUnsettled {
		how = "; drops what is not settled"
	}
	return "holds " + strings.Join(bounds, ", ") + how
}
