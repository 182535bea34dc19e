package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/guard"
)

const ruleExample = `  ferry limit rule ls
  ferry limit rule set user --limit 20 --window 10s --reason launch
  ferry limit rule set user --group vip --unlimited --reason contract
  ferry limit rule set user --limit 5 --window 10s --penalty-after 3 --penalty-block 1h --reason spam
  ferry limit rule clear user --reason over`

func newLimitRule(p process) *cobra.Command {
	c := newNoun("rule", "Rules of limits that hold in every process", ruleExample, newRuleList(p), newRuleSet(p),
		newRuleClear(p))
	c.Long = `A rule that is set holds for the next message, in every process that shares the store, in place of the
one that programs give; cleared, theirs hold again. Overrides, blocks and the whitelist of single keys stay.`
	return c
}

var ruleColumns = []column[guard.SharedRule]{
	{title: "limit", cell: func(r guard.SharedRule) any { return r.Limit }},
	{title: "group", width: 32, cell: func(r guard.SharedRule) any { return r.Group }},
	{title: "rule", width: 64, cell: func(r guard.SharedRule) any { return r.Rule.String() }},
	{title: "set", cell: func(r guard.SharedRule) any { return instant(r.At) }},
	{title: "by", width: 20, cell: func(r guard.SharedRule) any { return r.Actor }},
	{title: "reason", width: 40, cell: func(r guard.SharedRule) any { return r.Reason }},
}

func newRuleList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List the rules that are set", Example: "  ferry limit rule ls"}
	d := newGuardCommand(p, c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return d.with(c.Context(), func(a *guard.Admin) error {
			rules, err := a.Rules(c.Context())
			if err != nil {
				return err
			}
			return list(d.remote, ruleColumns, rules, "No rule is set: those of the programs hold.")
		})
	}
	return c
}

func newRuleSet(p process) *cobra.Command {
	c := &cobra.Command{Use: "set LIMIT", Short: "Give a limit, or a group of it, another rule",
		Long:    "Gives a limit, or a group of it, another rule. It is set whole: without --penalty-after nobody is blocked.",
		Example: ruleExample}
	d := newGuardCommand(p, c, true)
	var rule guard.Rule
	var group string
	ruleFlags(c.Flags(), &rule)
	c.Flags().BoolVar(&rule.Unlimited, "unlimited", false, "let everything pass")
	c.Flags().IntVar(&rule.Penalty.After, "penalty-after", 0, "violations in a row that block a key; default: none do")
	c.Flags().DurationVar(&rule.Penalty.Block, "penalty-block", 0, "how long the first block lasts; default: 1h")
	c.Flags().StringVar(&group, "group", "", "group of keys; default: those of no group")
	onlyOnCommandLine(c.Flags(), "unlimited", "penalty-after", "penalty-block", "group")
	c.RunE = func(c *cobra.Command, args []string) error {
		return d.changeRule(c.Context(), "set", args[0], group, func(a *guard.Admin) error {
			return a.SetRule(c.Context(), args[0], group, rule, d.reason)
		})
	}
	return c
}

func newRuleClear(p process) *cobra.Command {
	c := &cobra.Command{Use: "clear LIMIT", Short: "Make the rule hold again that programs give",
		Example: "  ferry limit rule clear user --reason over"}
	d := newGuardCommand(p, c, true)
	var group string
	c.Flags().StringVar(&group, "group", "", "group of keys; default: those of no group")
	onlyOnCommandLine(c.Flags(), "group")
	c.RunE = func(c *cobra.Command, args []string) error {
		return d.changeRule(c.Context(), "cleared", args[0], group, func(a *guard.Admin) error {
			return a.ClearRule(c.Context(), args[0], group, d.reason)
		})
	}
	return c
}

// ruleChange is what a change of a rule says it did.
type ruleChange struct {
	Result string `json:"result"`
	Limit  string `json:"limit"`
	Group  string `json:"group,omitempty"`
}

// changeRule makes a change and says so.
func (d *guardCommand) changeRule(ctx context.Context, result, limit, group string,
	do func(a *guard.Admin) error) error {
	return d.with(ctx, func(a *guard.Admin) error {
		if err := do(a); err != nil {
			return hintedReason(err, d.reason)
		}
		return d.one(ruleChange{result, limit, group}, func() error {
			if group == "" {
				return d.sayf("%s the rule of limit %s", result, limit)
			}
			return d.sayf("%s the rule of group %s of limit %s", result, group, limit)
		})
	})
}
