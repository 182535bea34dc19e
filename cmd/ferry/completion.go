package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
)

// completionTime is how long a shell may be kept waiting for names.
const completionTime = 2 * time.Second

// completes offers the topics, groups and members of the broker where a command below c takes one: as an argument, or
// for --group.
func (p process) completes(c *cobra.Command) {
	for _, sub := range c.Commands() {
		p.completes(sub)
	}
	if c.Flags().Lookup("broker") == nil {
		return
	}
	words := strings.Fields(c.Use)[1:]
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= len(words) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		switch strings.Trim(words[len(args)], "[].") {
		case "TOPIC":
			return p.names(c, topicNames), cobra.ShellCompDirectiveNoFileComp
		case "GROUP":
			return p.names(c, groupNames(args)), cobra.ShellCompDirectiveNoFileComp
		case "MEMBER":
			return p.ask(c, memberNames), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
	if c.Flags().Lookup("group") == nil {
		return
	}
	_ = c.RegisterFlagCompletionFunc("group", func(c *cobra.Command, args []string, _ string) ([]string,
		cobra.ShellCompDirective) {
		return p.names(c, groupNames(args)), cobra.ShellCompDirectiveNoFileComp
	}) // fails for a flag that does not exist
}

// names asks the broker for names of topics or groups.
func (p process) names(c *cobra.Command, of func([]driver.TopicInfo) []string) []string {
	return p.ask(c, func(ctx context.Context, s session) ([]string, error) {
		infos, err := s.driver.Topics(ctx)
		return of(infos), err
	})
}

// memberNames returns the processes that joined.
func memberNames(ctx context.Context, s session) (names []string, err error) {
	all, err := cluster.Members(ctx, s.broker)
	for _, i := range all {
		names = append(names, i.Member())
	}
	return names, err
}

// ask asks the broker. A shell has no use for an error: it is offered nothing then.
func (p process) ask(c *cobra.Command, what func(ctx context.Context, s session) ([]string, error)) []string {
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	if setFromEnvironment(c.Flags(), p.env) != nil {
		return nil
	}
	p.err = io.Discard
	r := &remote{process: p, url: c.Flags().Lookup("broker").Value.String(), format: formatTable}
	var names []string
	_ = r.with(ctx, func(s session) error {
		var err error
		names, err = what(ctx, s)
		return err
	})
	return names
}

func topicNames(infos []driver.TopicInfo) []string {
	names := make([]string, 0, len(infos))
	for _, info := range infos {
		if !driver.Reserved(info.Topic) {
			names = append(names, info.Topic)
		}
	}
	return names
}

// groupNames returns the groups of the topic that is the first argument, or of all topics.
func groupNames(args []string) func([]driver.TopicInfo) []string {
	return func(infos []driver.TopicInfo) []string {
		var names []string
		for _, info := range infos {
			if len(args) == 0 || info.Topic == args[0] {
				names = append(names, info.Groups...)
			}
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
}
