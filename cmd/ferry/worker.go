package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
)

const workerExample = `  ferry worker ls                                  who lives, and how they fare
  ferry worker show billing-1                      its handlers, and what they run
  ferry worker quiet billing-1 --topic orders      claims no more orders; what runs finishes
  ferry worker resume billing-1                    goes on with everything
  ferry worker scale billing-1 32                  runs 32 handlers at once`

const workerLong = `See the processes that consume from a broker, and tell them what to do. They are those that joined
(cluster.Join): see docs/cluster.md.

A process is called by its name. Where two that live have the same, by name/incarnation.`

func newWorker(p process) *cobra.Command {
	c := newNoun("worker", "See the processes that consume, and tell them what to do", workerExample, newWorkerList(p),
		newWorkerShow(p),
		newWorkerRest(p, "quiet", cluster.Quiet, "Stop a process from claiming messages; what it runs finishes"),
		newWorkerRest(p, "resume", cluster.Resume, "Let a process claim messages again"),
		newWorkerScale(p))
	c.Long = workerLong
	return c
}

func newWorkerList(p process) *cobra.Command {
	c := &cobra.Command{Use: "ls", Short: "List the processes that live",
		Example: "  ferry worker ls\n  ferry worker ls --topic orders --output ndjson",
		Long:    "Lists the processes that live. One that was killed is gone after three of its beats, 9 s by default."}
	r := newRemote(p, c)
	var topic string
	c.Flags().StringVar(&topic, "topic", "", "only those that consume this topic")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return r.with(c.Context(), func(s session) error {
			all, err := cluster.Members(c.Context(), s.broker)
			if err != nil {
				return err
			}
			var rows []memberView
			shared := ""
			for _, i := range all {
				if i.Shared {
					shared = i.Name
				}
				if v := viewMember(i); topic == "" || v.consumes(topic) {
					rows = append(rows, v)
				}
			}
			if shared != "" {
				s.notef("warning: two processes that live are called %s; give each a name of its own (cluster.Options.Name)",
					shared)
			}
			return list(s.remote, memberColumns, rows, "No process has joined. A program does with cluster.Join: see "+
				"docs/cluster.md.")
		})
	}
	return c
}

func newWorkerShow(p process) *cobra.Command {
	c := &cobra.Command{Use: "show MEMBER", Short: "Show a process: its handlers, and what they run",
		Example: "  ferry worker show billing-1\n  ferry worker show billing-1 --output json",
		Long:    "Shows a process as of its last beat: its handlers, and the 20 messages that have run the longest."}
	r := newRemote(p, c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			i, err := cluster.Find(c.Context(), s.broker, args[0])
			if err != nil {
				return err
			}
			v := viewMember(i)
			return s.one(v, func() error { return s.showMember(v) })
		})
	}
	return c
}

// told is the JSON form of a command that was obeyed.
type told struct {
	Member string `json:"member"`
	Result string `json:"result"`
	Topic  string `json:"topic,omitempty"`
	Group  string `json:"group,omitempty"`
}

// tell gives a command, and says that it was obeyed.
func (s session) tell(ctx context.Context, member string, command cluster.Command, result string) error {
	if err := cluster.Tell(ctx, s.broker, member, command); err != nil {
		return err
	}
	v := told{Member: member, Result: result, Topic: command.Topic, Group: command.Group}
	return s.one(v, func() error { return s.sayf("%s: %s", member, result) })
}

func workerFlag(f *pflag.FlagSet, worker *string) {
	f.StringVar(worker, "worker", "", "only this worker of the process, by its instance (default: all)")
}

func newWorkerRest(p process, verb string, do cluster.Action, short string) *cobra.Command {
	c := &cobra.Command{Use: verb + " MEMBER", Short: short, Example: fmt.Sprintf("  ferry worker %s billing-1\n  ferry "+
		"worker %s billing-1 --topic orders --group billing", verb, verb)}
	if do == cluster.Quiet {
		c.Long = "Stops a process from claiming messages: all, those of --topic, or of one --group of it. What runs " +
			"finishes,\nwhat has not started goes back at once. It lasts until 'ferry worker resume', or until the process is " +
			"started again.\n\n" +
			"On Redis Streams and Kafka the partitions of a quiet process wait for it: stop it to have others take them."
	}
	r := newRemote(p, c)
	command := cluster.Command{Do: do}
	c.Flags().StringVar(&command.Topic, "topic", "", "only this topic (default: all)")
	groupFlag(c.Flags(), &command.Group, "only this group of the topic (default: all)")
	workerFlag(c.Flags(), &command.Worker)
	onlyOnCommandLine(c.Flags(), "topic", "group", "worker")
	c.RunE = func(c *cobra.Command, args []string) error {
		if command.Topic == "" && command.Group != "" {
			return usage("--group is given without --topic", "name the topic too")
		}
		if command.Topic != "" {
			if err := driver.CheckName("topic", command.Topic); err != nil {
				return err
			}
		}
		if err := checkGroup(command.Group); err != nil {
			return err
		}
		result := "quiet"
		if do == cluster.Resume {
			result = "resumed"
		}
		return r.with(c.Context(), func(s session) error { return s.tell(c.Context(), args[0], command, result) })
	}
	return c
}

func newWorkerScale(p process) *cobra.Command {
	c := &cobra.Command{Use: "scale MEMBER HANDLERS", Short: "Set how many handlers a process runs at once",
		Example: "  ferry worker scale billing-1 32\n  ferry worker scale billing-1 8 --worker billing",
		Long: "Sets how many handlers a process runs at once. More start at once; where there are fewer, those that run " +
			"finish.\nIt lasts until the process is started again. A worker that scales itself (worker.Scaling) refuses."}
	r := newRemote(p, c)
	command := cluster.Command{Do: cluster.Scale}
	workerFlag(c.Flags(), &command.Worker)
	onlyOnCommandLine(c.Flags(), "worker")
	c.RunE = func(c *cobra.Command, args []string) error {
		n, err := strconv.Atoi(args[1])
		if err != nil || n < 1 {
			return usage(fmt.Sprintf("%q is no number of handlers", args[1]),
				"use 1 or more; 'ferry worker quiet' stops a process from claiming")
		}
		command.Concurrency = n
		return r.with(c.Context(), func(s session) error {
			return s.tell(c.Context(), args[0], command, fmt.Sprintf("runs %d handlers at once", n))
		})
	}
	return c
}
