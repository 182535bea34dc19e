package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/instance"
)

const subLong = `Receives messages of a group and prints them, until it has --count or you press Ctrl-C.

By default it only looks (--leave): what it received it holds, so that nobody else gets it
meanwhile, and gives everything back to its old place when it ends; it holds at most 1000
messages, and of one key those that were ready together. With --ack it takes them off the
queue for good: other consumers of the group never see them.

A group that does not exist is not created unless you say --create: from then on it keeps
every message for its consumers. Remove it with 'ferry group rm' when you are done.`

const subExample = `  ferry sub orders --count 3                       look at three messages
  ferry sub orders --group billing --ack           consume until Ctrl-C
  ferry sub orders --group debug --create          everything published from now on
  ferry sub orders --count 100 --output ndjson | jq -c .body`

// subOptions are the flags of ferry sub.
type subOptions struct {
	group              string
	count              int
	ack, leave, create bool
}

func newSub(p process) *cobra.Command {
	var o subOptions
	c := &cobra.Command{Use: "sub TOPIC", Short: "Receive messages and print them: look, or consume", Long: subLong,
		Example: subExample}
	r := newRemote(p, c)
	f := c.Flags()
	f.StringVar(&o.group, "group", driver.DefaultGroup, "the group to receive for")
	f.IntVar(&o.count, "count", 0, "stop after this many messages (default: at Ctrl-C)")
	f.BoolVar(&o.ack, "ack", false, "acknowledge them: they are done for this group")
	f.BoolVar(&o.leave, "leave", false, "give them back at the end (the default)")
	f.BoolVar(&o.create, "create", false, "create the group, and the topic, if they do not exist")
	onlyOnCommandLine(f, "ack", "leave", "create")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(o.check(), driver.CheckTopic(args[0])); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error { return o.receive(c.Context(), s, args[0]) })
	}
	return c
}

func (o subOptions) check() error {
	switch {
	case o.ack && o.leave:
		return usage("both --ack and --leave are given", "use one of them")
	case o.count < 0:
		return usage(fmt.Sprintf("--count %d is negative", o.count), "leave it out to go on until Ctrl-C")
	case !o.ack && o.count > driver.DefaultMaxInflight:
		return usage(fmt.Sprintf("--count %d is more than can be held at once", o.count),
			fmt.Sprintf("use at most %d, or --ack", driver.DefaultMaxInflight))
	}
	return checkGroup(o.group)
}

// receive joins the group, prints what it gets, and gives back what it holds.
func (o subOptions) receive(ctx context.Context, s session, topic string) (err error) {
	order, created, err := o.order(ctx, s, topic)
	if err != nil {
		return err
	}
	member, err := s.driver.Subscribe(ctx, driver.SubscribeOptions{
		Topic: topic, Group: o.group, Instance: subscriber(), Order: order, MaxRun: subBatch,
	})
	if ctx.Err() != nil && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if created {
		s.notef("created group %s of topic %s; remove it with: ferry group rm %s %s", o.group, topic, topic, o.group)
	}
	w := newWatcher(s, member, s.driver.Capabilities().DefaultLease, o)
	final := context.WithoutCancel(ctx)
	err = errors.Join(w.run(ctx), w.out.end(""), member.Close(final))
	w.summary()
	return err
}

// order returns that of the group, which a new member has to share, or that the group has to be created.
func (o subOptions) order(ctx context.Context, s session, topic string) (order driver.Order, create bool, err error) {
	st, err := s.driver.Stats(ctx, topic)
	for _, g := range st.Groups {
		if g.Group == o.group {
			return g.Order, false, nil
		}
	}
	switch missing := err == nil || errors.Is(err, ferry.ErrNotFound); {
	case !missing:
		return 0, false, err
	case o.create:
		return driver.Strict, true, nil
	}
	return 0, false, driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q has no group %q", topic, o.group),
		"'ferry group ls "+topic+"' lists them; --create makes a new one, which gets what is published from now on", err)
}

// subscriber names this process in histories and the console.
func subscriber() string { return "ferry-sub-" + printable(instance.Process()) }
