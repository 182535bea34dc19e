package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

// Alerts are the rules by which the server watches its broker, if there are any.
type Alerts struct {
	// Builtin takes the built-in rules too; one of the same name replaces its own.
	Builtin bool     `yaml:"builtin"`
	Rules   []Rule   `yaml:"rules"`
	Every   Duration `yaml:"every"`
	// Channels are where notices go, by the names that rules use.
	Channels map[string][]notify.Target `yaml:"channels"`
	Silences []Silence                  `yaml:"silences"`
	// Group collects notices to one destination.
	Group     *Group    `yaml:"group"`
	Heartbeat Heartbeat `yaml:"heartbeat"`
}

// Group collects notices for a time or a number of them.
type Group struct {
	Window Duration `yaml:"window"`
	Count  int      `yaml:"count"`
}

// Heartbeat is sent as long as somebody evaluates.
type Heartbeat struct {
	Every   Duration        `yaml:"every"`
	Targets []notify.Target `yaml:"targets"`
}

// Silence keeps notices back, until a time or for as long as it is in the file.
type Silence struct {
	Rule    string    `yaml:"rule"`
	Subject string    `yaml:"subject"`
	Until   time.Time `yaml:"until"`
	Comment string    `yaml:"comment"`
}

// Rule is one rule.
type Rule struct{ alert.Rule }

// UnmarshalYAML reads a rule and checks it here, where its line is known.
func (r *Rule) UnmarshalYAML(node ast.Node) error {
	if err := decode(node, &r.Rule, "a rule cannot be read: its times look like 30s or 1h30m"); err != nil {
		return err
	}
	err := alert.Check([]alert.Rule{r.Rule})
	var known *driver.Error
	if errors.As(err, &known) {
		return &valueError{line: lineOf(node), text: known.Text, hint: known.Hint}
	}
	return err
}

// Watches reports whether there is anything to evaluate.
func (a Alerts) Watches() bool { return a.Builtin || len(a.Rules) > 0 }

// Options returns the options of a watch, all but its hub and its collector.
func (a Alerts) Options() alert.Options {
	o := alert.Options{Rules: a.rules(), Channels: a.Channels, Every: time.Duration(a.Every),
		Heartbeat: alert.Heartbeat{Targets: a.Heartbeat.Targets, Every: time.Duration(a.Heartbeat.Every)}}
	for _, s := range a.Silences {
		o.Silences = append(o.Silences, alert.Silence{Rule: s.Rule, Subject: s.Subject, Until: s.Until,
			Comment: s.Comment})
	}
	if g := a.Group; g != nil {
		o.Group = &notify.Digest{Window: time.Duration(g.Window), Count: g.Count}
	}
	return o
}

// rules are those of the file and, if it wants them, the built-in ones. One of these whose usual channels are not there
// goes to all that are.
func (a Alerts) rules() []alert.Rule {
	own := make([]alert.Rule, len(a.Rules))
	for i, r := range a.Rules {
		own[i] = r.Rule
	}
	if !a.Builtin {
		return own
	}
	builtin := alert.Builtin()
	for i := range builtin {
		if !a.reaches(builtin[i]) {
			builtin[i].Channels = nil
		}
	}
	return alert.Merge(builtin, own)
}

// reaches reports whether one of the channels of a rule is there.
func (a Alerts) reaches(r alert.Rule) bool {
	return len(r.Channels) == 0 && len(a.Channels) > 0 ||
		slices.ContainsFunc(r.Channels, func(name string) bool { return len(a.Channels[name]) > 0 })
}

// check says what is wrong beyond the form: what is named must be there.
func (a Alerts) check(n Notify) error {
	if !a.Watches() {
		return nil
	}
	all := slices.Concat(slices.Collect(maps.Values(a.Channels))...)
	for _, t := range append(all, a.Heartbeat.Targets...) {
		for _, stage := range append([]notify.Target{t}, t.Fallbacks...) {
			if _, ok := n.Channels[stage.Channel]; !ok {
				return driver.NewError(driver.ErrInvalid,
					fmt.Sprintf("alerts of the configuration go to channel %.60q, which is not there", stage.Channel),
					"list it under notify.channels", nil)
			}
		}
	}
	if len(all) == 0 {
		return driver.NewError(driver.ErrInvalid, "alerts of the configuration go nowhere",
			"list targets under alerts.channels", nil)
	}
	for _, r := range a.Rules {
		if !a.reaches(r.Rule) && !r.Disabled {
			return driver.NewError(driver.ErrInvalid,
				fmt.Sprintf("rule %.60q of the configuration goes to channels that are not there", r.Name),
				"alerts.channels has "+strings.Join(slices.Sorted(maps.Keys(a.Channels)), ", "), nil)
		}
	}
	if err := alert.Check(a.rules()); err != nil {
		return err
	}
	return alert.CheckSilences(a.Options().Silences)
}
