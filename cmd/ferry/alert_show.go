package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/server/config"
)

// historyOfOne is how many entries of the history are looked through for those of one alert.
const historyOfOne = 10_000

func newAlertShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show RULE SUBJECT", Short: "Show an alert, and what happened to it in the last 7 days",
		Example: "  ferry alert show 'queue depth' orders/billing"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			v, err := s.alert(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return r.one(v, func() error { return r.showAlert(v) })
		})
	}
	return c
}

// alertShown is the JSON form of an alert with its history.
type alertShown struct {
	alertView
	History []entryOfHistory `json:"history"`
}

func (s session) alert(ctx context.Context, rule, subject string) (alertShown, error) {
	a, err := alert.Get(ctx, s.broker, rule, subject)
	if err != nil {
		return alertShown{}, err
	}
	v := alertShown{viewAlert(a), []entryOfHistory{}}
	all, err := alert.History(ctx, s.broker, historyOfOne)
	for _, e := range all {
		if e.Rule == rule && e.Subject == subject {
			v.History = append(v.History, viewHistory(e))
		}
	}
	return v, err
}

// showAlert prints an alert for people.
func (r *remote) showAlert(v alertShown) error {
	lines := []string{v.Rule + " for " + v.Subject + " is " + v.Status + ", " + v.Severity}
	for _, line := range [...][2]string{{"since", textOf(v.Since)}, {"fired", textOf(v.Fired)},
		{"told", textOf(v.Notified)}, {"ended", textOf(v.Ended)}, {"taken care of by", v.Acknowledged}, {"text", v.Text}} {
		if line[1] != "" {
			lines = append(lines, "  "+line[0]+": "+line[1])
		}
	}
	for _, e := range v.History {
		lines = append(lines, "  "+textOf(e.At)+" "+e.What+" "+e.Text)
	}
	for _, line := range lines {
		for i, part := range strings.Split(line, "\n") { // a text may have several
			if err := r.sayf("%s%s", strings.Repeat("    ", min(i, 1)), printable(part)); err != nil {
				return err
			}
		}
	}
	return nil
}

func newAlertTest(p process) *cobra.Command {
	c := &cobra.Command{Use: "test RULE", Short: "Send a notice of a rule as if it fired, and say whether it arrived",
		Long: "Sends a notice of a rule of a configuration as if it fired, to the channels of the rule, through the\n" +
			"hubs that run on the broker. It needs none of their secrets.",
		Example: "  ferry alert test 'queue depth' --config ferry.yaml"}
	r := newRemote(p, c)
	file := c.Flags().String("config", "ferry.yaml", "file of the configuration")
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := config.Read(*file)
		if err != nil {
			return err
		}
		o := f.Alerts.Options()
		m, err := alert.TestMessage(o.Rules, o.Channels, args[0])
		if err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error { return s.notify(c.Context(), f.Notify.Topic, m, true) })
	}
	return c
}
