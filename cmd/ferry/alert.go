package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/internal/jsontime"
)

const alertLong = `Alerts lie in the broker: ferry serve with rules in ferry.yaml, or a program that runs an
alert.Watch, evaluates rules and tells people. These commands show what fires, who takes care of it, and what
happened; check and prometheus read a file of rules and need no broker.`

const alertExample = `  ferry alert ls                                     what fires, or is about to
  ferry alert show 'queue depth' orders/billing      everything about one, with its history
  ferry alert ack 'queue depth' orders/billing --who li   no more reminders
  ferry alert silence 2h --rule 'queue*' --subject 'orders/*'
  ferry alert silences
  ferry alert unsilence ID
  ferry alert history
  ferry alert alive                                  fails when nobody evaluates
  ferry alert test 'queue depth' --config ferry.yaml   does its notice arrive?
  ferry alert check rules.yaml                       what is wrong with rules
  ferry alert prometheus rules.yaml                  the same rules for Prometheus`

func newAlert(p process) *cobra.Command {
	c := newNoun("alert", "Show, silence and acknowledge alerts, and check rules", alertExample, newAlertList(p),
		newAlertShow(p), newAlertAck(p), newAlertSilence(p), newAlertSilences(p), newAlertUnsilence(p),
		newAlertHistory(p), newAlertAlive(p), newAlertTest(p), newAlertCheck(p), newAlertPrometheus(p))
	c.Long = alertLong
	return c
}

func newAlertList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List what fires, or is about to",
		Example: "  ferry alert ls\n  ferry alert ls --resolved"}
	r := newRemote(p, c)
	ended := c.Flags().Bool("resolved", false, "list what was over lately, too")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error {
			found, err := alert.List(c.Context(), s.broker)
			if err != nil {
				return err
			}
			var views []alertView
			for _, a := range found {
				if *ended || a.Status != alert.Resolved {
					views = append(views, viewAlert(a))
				}
			}
			return list(r, alertColumns, views, "Nothing fires; 'ferry alert alive' tells whether anybody looks.")
		})
	}
	return c
}

func newAlertAck(p process) *cobra.Command {
	c := &cobra.Command{Use: "ack RULE SUBJECT", Short: "Say who takes care of an alert: no more reminders for a day",
		Example: "  ferry alert ack 'queue depth' orders/billing --who li"}
	r := newRemote(p, c)
	who := c.Flags().String("who", os.Getenv("USER"), "who takes care")
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			if err := alert.Acknowledge(c.Context(), s.broker, args[0], args[1], *who); err != nil {
				return err
			}
			v := alertChange{Rule: args[0], Subject: args[1], Result: "acknowledged", Who: *who}
			return r.one(v, func() error { return r.sayf("%s takes care of %s for %s", *who, args[0], args[1]) })
		})
	}
	return c
}

func newAlertSilence(p process) *cobra.Command {
	c := &cobra.Command{Use: "silence DURATION", Short: "Keep notices back for a time",
		Long: "Keeps notices back for a time. What fires still shows, and if it still does in the end people are told. It\n" +
			"prints the id of the silence.",
		Example: "  ferry alert silence 2h --rule 'queue*'\n" +
			"  ferry alert silence 30m --subject 'orders/*' --comment deployment"}
	r := newRemote(p, c)
	var s alert.Silence
	c.Flags().StringVar(&s.Rule, "rule", "", "pattern of the rules; all if it is left out")
	c.Flags().StringVar(&s.Subject, "subject", "", "pattern of the subjects, topic/group; all if it is left out")
	c.Flags().StringVar(&s.Who, "who", os.Getenv("USER"), "who silences")
	c.Flags().StringVar(&s.Comment, "comment", "", "why")
	c.RunE = func(c *cobra.Command, args []string) error {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return usage("the duration "+printable(args[0])+" cannot be read", "write 90s, 30m or 2h")
		}
		return r.with(c.Context(), func(open session) error {
			id, err := alert.AddSilence(c.Context(), open.broker, s, d)
			if err != nil {
				return err
			}
			v := alertChange{Silence: id, Result: "silenced"}
			return r.one(v, func() error { return r.sayf("%s", id) })
		})
	}
	return c
}

func newAlertSilences(p process) *cobra.Command {
	c := &cobra.Command{Use: "silences", Short: "List silences", Example: "  ferry alert silences"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error {
			found, err := alert.Silences(c.Context(), s.broker)
			if err != nil {
				return err
			}
			views := make([]silenceView, len(found))
			for i, one := range found {
				views[i] = viewSilence(one)
			}
			return list(r, silenceColumns, views, "Nothing is silenced.")
		})
	}
	return c
}

func newAlertUnsilence(p process) *cobra.Command {
	c := &cobra.Command{Use: "unsilence ID", Short: "End a silence",
		Example: "  ferry alert unsilence 01990f2e-7c00-7a00-8000-000000000000"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			if err := alert.RemoveSilence(c.Context(), s.broker, args[0]); err != nil {
				return err
			}
			v := alertChange{Silence: args[0], Result: "ended"}
			return r.one(v, func() error { return r.sayf("ended silence %s", args[0]) })
		})
	}
	return c
}

func newAlertHistory(p process) *cobra.Command {
	c := &cobra.Command{Use: "history", Short: "List what happened in the last 7 days, the newest first",
		Example: "  ferry alert history --limit 20"}
	r := newRemote(p, c)
	limit := c.Flags().Int("limit", 100, "how many entries at most")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *limit < 1 {
			return usage("--limit is less than 1", "use 1 or more")
		}
		return r.with(c.Context(), func(s session) error {
			found, err := alert.History(c.Context(), s.broker, *limit)
			if err != nil {
				return err
			}
			views := make([]entryOfHistory, len(found))
			for i, e := range found {
				views[i] = viewHistory(e)
			}
			return list(r, historyColumns, views, "Nothing happened.")
		})
	}
	return c
}

func newAlertAlive(p process) *cobra.Command {
	c := &cobra.Command{Use: "alive", Short: "Tell when alerts were last evaluated; fails when nobody does",
		Example: "  ferry alert alive"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error {
			beat, err := alert.Alive(c.Context(), s.broker)
			if err != nil {
				return err
			}
			v := beatView{At: jsontime.At(beat.At), Every: jsontime.Duration(beat.Every), Rules: beat.Rules,
				Unjudged: beat.Unjudged, Missing: beat.Missing}
			return r.one(v, func() error { return r.showBeat(v, beat.Every) })
		})
	}
	return c
}

func newAlertCheck(p process) *cobra.Command {
	c := &cobra.Command{Use: "check RULEFILE", Short: "Say what is wrong with a file of rules; needs no broker",
		Example: "  ferry alert check rules.yaml"}
	r := newRemote(p, c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		rules, err := readRules(args[0])
		if err != nil {
			return err
		}
		return r.one(map[string]int{"rules": len(rules)}, func() error {
			return r.sayf("%d rules, nothing is wrong",
				len(rules))
		})
	}
	return c
}

func newAlertPrometheus(p process) *cobra.Command {
	c := &cobra.Command{Use: "prometheus [RULEFILE]",
		Short:   "Print rules as a file for Prometheus, the built-in ones if none is given",
		Example: "  ferry alert prometheus > ferry-alerts.yml"}
	r := newRemote(p, c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		rules := alert.Builtin()
		if len(args) > 0 {
			var err error
			if rules, err = readRules(args[0]); err != nil {
				return err
			}
		}
		text, err := alert.Prometheus(rules)
		if err != nil {
			return err
		}
		return r.sayf("%s", text)
	}
	return c
}

func readRules(file string) ([]alert.Rule, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usage("the rules cannot be read: "+err.Error(), "name a file of rules; docs/alerts.md shows one")
	}
	return alert.ParseRules(data)
}
