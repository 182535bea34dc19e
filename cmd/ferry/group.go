package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
)

const groupExample = `  ferry group ls orders
  ferry group create orders billing                    gets what is published from now on
  ferry group create orders audit --start begin        and what the topic still keeps
  ferry group ls orders --partitions                   how far each has come in each partition
  ferry group pending orders billing                   what it has read and not settled
  ferry group reset orders audit --to begin --dry-run  what starting again would do
  ferry group replay orders audit --from begin         deliver settled messages again
  ferry group rm orders debug`

func newGroup(p process) *cobra.Command {
	return newNoun("group", "List, create, reset, replay and remove the groups of a topic", groupExample, newGroupList(p),
		newGroupCreate(p), newGroupRemove(p),
		newGroupReset(p), newGroupReplay(p), newGroupPending(p))
}

func newGroupList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls TOPIC", Short: "List the groups of a topic with their counts",
		Example: "  ferry group ls orders\n  ferry group ls orders --partitions"}
	r := newRemote(p, c)
	var partitions bool
	c.Flags().BoolVar(&partitions, "partitions", false, "how far they have come in each partition, and who has what "+
		"pending")
	onlyOnCommandLine(c.Flags(), "partitions")
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			if partitions {
				return s.listPartitions(c.Context(), args[0])
			}
			st, err := s.driver.Stats(c.Context(), args[0])
			if err != nil {
				return err
			}
			return list(r, groupColumns, viewTopic(st).Groups,
				fmt.Sprintf("Topic %s has no groups yet; the first publish creates %q.", args[0], driver.DefaultGroup))
		})
	}
	return c
}

func newGroupCreate(p process) *cobra.Command {
	c := &cobra.Command{Use: "create TOPIC GROUP", Short: "Create a group",
		Long: "Creates a group, and its topic if there is none. Each group gets every message, and keeps it until one\nof " +
			"its consumers has handled it. One that exists with the same order is fine.", Example: groupExample}
	r := newRemote(p, c)
	var order, start string
	c.Flags().StringVar(&order, "order", "strict", "strict: followers of a key wait while its head is retried; or relaxed")
	c.Flags().StringVar(&start, "start", "end", "end: what becomes ready from now on; begin: all that is kept; a time; "+
		"or a ref")
	onlyOnCommandLine(c.Flags(), "order", "start")
	c.RunE = func(c *cobra.Command, args []string) error {
		o, err := groupOptions(order, start)
		if err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if err := s.driver.EnsureGroup(c.Context(), args[0], args[1], o); err != nil {
				return err
			}
			return r.did(change{Topic: args[0], Group: args[1], Result: "created"})
		})
	}
	return c
}

func groupOptions(order, start string) (o driver.GroupOptions, err error) {
	if err := oneOf("order", order, driver.Strict.String(), driver.Relaxed.String()); err != nil {
		return o, err
	}
	if order == driver.Relaxed.String() {
		o.Order = driver.Relaxed
	}
	o.Start, err = parsePosition("start", start)
	return o, err
}

func newGroupRemove(p process) *cobra.Command {
	c := &cobra.Command{Use: "rm TOPIC GROUP", Short: "Remove a group with what it has not settled, and its dead letters",
		Long: "Removes a group with what it has not settled, and its dead letters. Its consumers must be stopped " +
			"first.\nIt asks for the name of the group, or takes --yes.",
		Example: "  ferry group rm orders debug\n  ferry group rm orders debug --yes"}
	r := newRemote(p, c)
	var yes bool
	yesFlag(c.Flags(), &yes)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error { return s.removeGroup(c.Context(), args[0], args[1], yes) })
	}
	return c
}

func (s session) removeGroup(ctx context.Context, topic, group string, yes bool) error {
	st, err := s.driver.Stats(ctx, topic)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("remove group %s of topic %s", group, topic)
	for _, g := range st.Groups {
		if g.Group == group {
			what += fmt.Sprintf(" with %d unsettled messages and %d dead letters", g.Ready+g.Inflight+g.Waiting, g.Dead)
		}
	}
	if err := s.confirm(ctx, yes, what, group); err != nil {
		return err
	}
	if err := s.driver.DeleteGroup(ctx, topic, group); err != nil {
		return err
	}
	return s.did(change{Topic: topic, Group: group, Result: "removed"})
}
