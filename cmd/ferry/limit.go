package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/guard"
)

const limitExample = `  export FERRY_STORE=redis://localhost:6379
  ferry limit ls                                               who is kept out?
  ferry limit show user 4711                                   what is known of a key
  ferry limit check user 4711                                  would a message of it pass now?
  ferry limit unblock user 4711 --reason "false alarm"
  ferry limit block user 4711 --for 24h --reason spam          without --for: for good
  ferry limit override user 4711 --limit 100 --window 10s --for 2h --reason campaign
  ferry limit whitelist add user partner-7 --reason "contract 12"
  ferry limit rule set user --limit 20 --window 10s --reason launch    for every key, in every process
  ferry limit audit                                            who changed what, and why`

func newLimit(p process) *cobra.Command {
	c := newNoun("limit", "See and change whom rate limits keep out", limitExample,
		newLimitList(p), newLimitShow(p), newLimitCheck(p), newLimitBlock(p), newLimitUnblock(p), newLimitOverride(p),
		newLimitWhitelist(p), newLimitRule(p), newLimitAudit(p))
	c.Long = "See and change whom rate limits keep out.\n\n" + storeHelp
	return c
}

func newLimitShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show LIMIT KEY", Short: "Show everything about one key",
		Example: "  ferry limit show user 4711"}
	d := newGuardCommand(p, c, false)
	c.RunE = func(c *cobra.Command, args []string) error {
		return d.with(c.Context(), func(a *guard.Admin) error {
			s, err := a.Status(c.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			return d.one(s, func() error { return d.showStatus(s) })
		})
	}
	return c
}

func newLimitList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls [LIMIT]", Short: "List the keys that are blocked",
		Example: "  ferry limit ls\n  ferry limit ls user --output json"}
	d := newGuardCommand(p, c, false)
	c.RunE = func(c *cobra.Command, args []string) error {
		return d.listKeys(c.Context(), guard.KindBlocked, args, "Nobody is blocked.")
	}
	return c
}

func newLimitCheck(p process) *cobra.Command {
	c := &cobra.Command{Use: "check LIMIT KEY", Short: "Tell whether a message of a key would pass now",
		Long: "Tells whether a message of a key would pass now, and counts nothing. The rule is the one that was " +
			"last\nasked with, unless --limit and --window give another. Exit code 1 when it would not pass.",
		Example: "  ferry limit check user 4711\n  ferry limit check user 4711 --limit 20 --window 10s"}
	d := newGuardCommand(p, c, false)
	var rule guard.Rule
	ruleFlags(c.Flags(), &rule)
	c.RunE = func(c *cobra.Command, args []string) error {
		return d.with(c.Context(), func(a *guard.Admin) error {
			var given *guard.Rule
			if rule != (guard.Rule{}) {
				given = &rule
			}
			v, err := a.Check(c.Context(), args[0], args[1], given)
			if err != nil {
				return err
			}
			return d.showVerdict(v)
		})
	}
	return c
}

func newLimitBlock(p process) *cobra.Command {
	c := &cobra.Command{Use: "block LIMIT KEY", Short: "Keep a key out",
		Example: "  ferry limit block user 4711 --for 24h --reason spam"}
	d := newGuardCommand(p, c, true)
	var length time.Duration
	c.Flags().DurationVar(&length, "for", 0, "how long; default: for good")
	onlyOnCommandLine(c.Flags(), "for")
	c.RunE = func(c *cobra.Command, args []string) error {
		return d.change(c.Context(), "blocked", args, func(a *guard.Admin) error {
			return a.Block(c.Context(), args[0], args[1], length, d.reason)
		})
	}
	return c
}

func newLimitUnblock(p process) *cobra.Command {
	c := &cobra.Command{Use: "unblock LIMIT KEY", Short: "Let a key in again, and forget its violations",
		Long: "Lets a key in again, and forgets its violations and earlier blocks. Messages of it that wait are looked " +
			"at\nagain within half a minute.",
		Example: `  ferry limit unblock user 4711 --reason "false alarm"`}
	d := newGuardCommand(p, c, true)
	c.RunE = func(c *cobra.Command, args []string) error {
		return d.change(c.Context(), "unblocked", args, func(a *guard.Admin) error {
			return a.Unblock(c.Context(), args[0], args[1], d.reason)
		})
	}
	return c
}

func newLimitOverride(p process) *cobra.Command {
	c := &cobra.Command{Use: "override LIMIT KEY", Short: "Give a key a rule of its own for some time",
		Example: "  ferry limit override user 4711 --limit 100 --window 10s --for 2h --reason campaign\n  ferry limit " +
			"override user 4711 --clear --reason over"}
	d := newGuardCommand(p, c, true)
	var rule guard.Rule
	var length time.Duration
	var over bool
	ruleFlags(c.Flags(), &rule)
	c.Flags().BoolVar(&rule.Unlimited, "unlimited", false, "let everything pass")
	c.Flags().DurationVar(&length, "for", 0, "how long it holds")
	c.Flags().BoolVar(&over, "clear", false, "end the override that holds")
	onlyOnCommandLine(c.Flags(), "unlimited", "for", "clear")
	c.RunE = func(c *cobra.Command, args []string) error {
		if over {
			return d.change(c.Context(), "cleared the override of", args, func(a *guard.Admin) error {
				return a.ClearOverride(c.Context(), args[0], args[1], d.reason)
			})
		}
		return d.change(c.Context(), "overrode", args, func(a *guard.Admin) error {
			return a.Override(c.Context(), args[0], args[1], rule, length, d.reason)
		})
	}
	return c
}

func newLimitWhitelist(p process) *cobra.Command {
	const example = "  ferry limit whitelist add user partner-7 --reason \"contract 12\"\n  ferry limit whitelist rm " +
		"user partner-7 --reason ended\n  ferry limit whitelist ls"
	add := &cobra.Command{Use: "add LIMIT KEY", Short: "Let a key pass always; a later block ends it", Example: example}
	adding := newGuardCommand(p, add, true)
	add.RunE = func(c *cobra.Command, args []string) error {
		return adding.change(c.Context(), "whitelisted", args, func(a *guard.Admin) error {
			return a.Whitelist(c.Context(), args[0], args[1], adding.reason)
		})
	}
	rm := &cobra.Command{Use: "rm LIMIT KEY", Short: "Make the rules hold for a key again", Example: example}
	removing := newGuardCommand(p, rm, true)
	rm.RunE = func(c *cobra.Command, args []string) error {
		return removing.change(c.Context(), "took from the whitelist", args, func(a *guard.Admin) error {
			return a.Unwhitelist(c.Context(), args[0], args[1], removing.reason)
		})
	}
	ls := &cobra.Command{Use: "ls [LIMIT]", Short: "List the keys that pass always", Example: example}
	listing := newGuardCommand(p, ls, false)
	ls.RunE = func(c *cobra.Command, args []string) error {
		return listing.listKeys(c.Context(), guard.KindWhitelisted, args, "The whitelist is empty.")
	}
	return newNoun("whitelist", "Keys that no limit concerns", example, add, rm, ls)
}

func newLimitAudit(p process) *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "List who changed what, and why", Example: "  ferry limit audit --count 20"}
	d := newGuardCommand(p, c, false)
	var count int
	c.Flags().IntVar(&count, "count", 50, "how many, newest first; the store keeps 1000")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if count < 1 {
			return usage(fmt.Sprintf("--count %d is out of range", count), "use 1 or more")
		}
		return d.with(c.Context(), func(a *guard.Admin) error {
			changes, err := a.Audit(c.Context(), count)
			if err != nil {
				return err
			}
			return list(d.remote, auditColumns, changes, "Nothing was changed yet.")
		})
	}
	return c
}

// ruleFlags adds what a rule is made of.
func ruleFlags(f *pflag.FlagSet, r *guard.Rule) {
	f.IntVar(&r.Limit, "limit", 0, "how many messages")
	f.DurationVar(&r.Window, "window", 0, "in which time, 10s for example")
	f.IntVar(&r.Burst, "burst", 0, "make it a token bucket that saves so many; default: an exact sliding window")
	onlyOnCommandLine(f, "limit", "window", "burst")
}

// change makes a change and says so.
func (d *guardCommand) change(ctx context.Context, result string, args []string, do func(a *guard.Admin) error) error {
	return d.with(ctx, func(a *guard.Admin) error {
		if err := do(a); err != nil {
			return hintedReason(err, d.reason)
		}
		return d.changed(guardChange{Result: result, Limit: args[0], Key: args[1]})
	})
}

func hintedReason(err error, reason string) error {
	if reason == "" {
		return hinted(err, "add --reason: the audit list keeps it")
	}
	return err
}
