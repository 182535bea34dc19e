package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

const topicExample = `  ferry topic ls                              what is there, and is it moving?
  ferry topic show orders                     settings, groups, and where every message is
  ferry topic create orders --max-messages 1000000 --keep 24h
  ferry topic alter orders --keep 48h
  ferry topic pause orders --group billing    publishing goes on, deliveries do not
  ferry topic resume orders --group billing
  ferry topic purge orders                    remove what waits
  ferry topic retain orders --age 72h         bound the log (Redis Streams)
  ferry topic trim orders                     and apply the bounds now
  ferry topic rm orders --yes                 remove everything, without a question`

func newTopic(p process) *cobra.Command {
	return newNoun("topic", "List, show, create, alter, pause, purge and remove topics", topicExample,
		newTopicList(p), newTopicShow(p), newTopicCreate(p), newTopicAlter(p), newTopicPause(p, true),
		newTopicPause(p, false), newTopicPurge(p),
		newTopicRetain(p), newTopicTrim(p), newTopicRemove(p))
}

func newTopicList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List the topics with their counts over all groups",
		Example: "  ferry topic ls\n  ferry topic ls --output json | jq '.[].topic'"}
	r := newRemote(p, c)
	var own bool
	c.Flags().BoolVar(&own, "all", false, "also Ferry's own topics, whose names begin with ferry.")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error {
			all, err := allStats(c.Context(), s.driver)
			if err != nil {
				return err
			}
			rows := make([]topicView, 0, len(all))
			for _, st := range all {
				if own || !driver.Reserved(st.Topic) {
					rows = append(rows, viewTopic(st))
				}
			}
			return list(r, topicColumns, rows, "No topics yet. Try: ferry pub hello '{\"name\":\"世界\"}'")
		})
	}
	return c
}

func newTopicShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show TOPIC", Short: "Show one topic: settings, groups, and where every message is",
		Example: "  ferry topic show orders"}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			st, err := s.driver.Stats(c.Context(), args[0])
			if err != nil {
				return err
			}
			config, err := configOf(c.Context(), s.driver, args[0])
			if err != nil {
				return err
			}
			v := viewTopic(st)
			v.Config = viewConfig(config)
			return r.one(v, func() error { return r.showTopic(v) })
		})
	}
	return c
}

// configOf returns the settings of a topic.
func configOf(ctx context.Context, d driver.Inspector, topic string) (driver.TopicConfig, error) {
	infos, err := d.Topics(ctx)
	for _, info := range infos {
		if info.Topic == topic {
			return info.Config, err
		}
	}
	if err == nil {
		err = driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q does not exist", topic),
			"'ferry topic ls' lists those that do", nil)
	}
	return driver.TopicConfig{}, err
}

func newTopicPause(p process, paused bool) *cobra.Command {
	c := &cobra.Command{Use: "pause TOPIC", Short: "Stop deliveries of a topic or of one group; publishing goes on",
		Example: "  ferry topic pause orders\n  ferry topic pause orders --group billing"}
	done := "paused"
	if !paused {
		done = "resumed"
		c.Use, c.Short, c.Example = "resume TOPIC", "Let deliveries of a topic or of one group go on",
			"  ferry topic resume orders"
	}
	r := newRemote(p, c)
	var group string
	groupFlag(c.Flags(), &group, "only this group (default: the whole topic)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkGroup(group); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			if err := s.driver.Pause(c.Context(), args[0], group, paused); err != nil {
				return err
			}
			return r.did(change{Topic: args[0], Group: group, Result: done})
		})
	}
	return c
}

func newTopicPurge(p process) *cobra.Command {
	c := &cobra.Command{Use: "purge TOPIC", Short: "Remove what is ready, waiting or delayed; not what is in flight or " +
		"dead",
		Long: "Removes what is ready, waits for a retry or is delayed when it starts. What is in flight, dead " +
			"or\npublished later stays. It asks for the name of the topic, or takes --yes.",
		Example: "  ferry topic purge orders\n  ferry topic purge orders --group billing --yes"}
	r := newRemote(p, c)
	var group string
	var yes bool
	groupFlag(c.Flags(), &group, "only this group (default: all groups, and what is delayed)")
	yesFlag(c.Flags(), &yes)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkGroup(group); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error { return s.purge(c.Context(), args[0], group, yes) })
	}
	return c
}

func (s session) purge(ctx context.Context, topic, group string, yes bool) error {
	st, err := s.driver.Stats(ctx, topic)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("purge %d entries of topic %s", purgeable(st, group), topic)
	if group != "" {
		what += ", group " + group
	}
	if err := s.confirm(ctx, yes, what, topic); err != nil {
		return err
	}
	n, err := s.driver.Purge(ctx, topic, group)
	if err != nil {
		return err
	}
	return s.did(change{Topic: topic, Group: group, Result: "purged", Count: n})
}

// purgeable returns how many entries a purge would remove now.
func purgeable(st driver.TopicStats, group string) int64 {
	var n int64
	if group == "" {
		n = st.Delayed
	}
	for _, g := range st.Groups {
		if group == "" || g.Group == group {
			n += g.Ready + g.Waiting
		}
	}
	return n
}

func newTopicRemove(p process) *cobra.Command {
	c := &cobra.Command{Use: "rm TOPIC", Short: "Remove a topic with all its messages, groups and dead letters",
		Long: "Removes a topic with all its messages, groups and dead letters. Its consumers must be stopped first.\nIt " +
			"asks for the name of the topic, or takes --yes.",
		Example: "  ferry topic rm orders\n  ferry topic rm orders --yes"}
	r := newRemote(p, c)
	var yes bool
	yesFlag(c.Flags(), &yes)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error { return s.removeTopic(c.Context(), args[0], yes) })
	}
	return c
}

func (s session) removeTopic(ctx context.Context, topic string, yes bool) error {
	st, err := s.driver.Stats(ctx, topic)
	if err != nil {
		return err
	}
	v := viewTopic(st)
	what := fmt.Sprintf("remove topic %s with %d unsettled messages, %d dead letters, %d parse errors and groups: %s",
		topic, st.Messages, v.Dead, st.Invalid, strings.Join(v.names(), ", "))
	if err := s.confirm(ctx, yes, what, topic); err != nil {
		return err
	}
	if err := s.driver.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	return s.did(change{Topic: topic, Result: "removed"})
}

// change is what was done to a topic or a group.
type change struct {
	Topic  string `json:"topic"`
	Group  string `json:"group,omitempty"`
	Result string `json:"result"`
	Count  int    `json:"count,omitempty"`
}

// did prints a change.
func (r *remote) did(c change) error {
	return r.one(c, func() error {
		words := []string{c.Result}
		if c.Result == "purged" {
			words = append(words, fmt.Sprintf("%d entries of", c.Count))
		}
		words = append(words, "topic "+c.Topic)
		if c.Group != "" {
			words = append(words, "group "+c.Group)
		}
		return r.sayf("%s", strings.Join(words, " "))
	})
}

// ago returns how long something waits, or nothing.
func ago[D time.Duration | jsontime.Duration](d D) string {
	if d <= 0 {
		return ""
	}
	return shortly(d)
}
