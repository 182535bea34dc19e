package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
)

const msgCancelLong = `Cancels messages, wherever they are: one that is ready, delayed or waits for a retry is
removed, and of one that runs the handler is told to stop, on whichever instance that is. Its context ends with
worker.ErrCancelled, and the message is dropped without another attempt, unless the handler succeeds all the same.
That needs a process that joined: see 'ferry worker ls'.

For every group, or with --group for that one. It asks first, or takes --yes.

`

func newMsgCancel(p process) *cobra.Command {
	c := &cobra.Command{Use: "cancel TOPIC MESSAGE...", Short: "Cancel messages, those that run too",
		Long:    msgCancelLong + targetHelp,
		Example: "  ferry msg cancel orders 0-42\n  ferry msg cancel orders 0-42 0-43 --group billing --yes"}
	r := newRemote(p, c)
	var group string
	var yes bool
	groupFlag(c.Flags(), &group, "only for this group (default: for every group)")
	yesFlag(c.Flags(), &yes)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := checkGroup(group); err != nil {
			return err
		}
		return r.with(c.Context(), func(s session) error {
			found, err := locateAll(c.Context(), s.driver, args[0], args[1:])
			if err != nil {
				return err
			}
			if err := s.confirm(c.Context(), yes, fmt.Sprintf("cancel in topic %s: %s", args[0], strings.Join(args[1:], ", ")),
				""); err != nil {
				return err
			}
			targets, names, errs := make([]driver.Target, len(found)), make([]string, len(found)), make([]error, len(found))
			for i, l := range found {
				l.target.Group = group
				targets[i], names[i] = l.target, l.name
				errs[i] = s.cancel(c.Context(), l, group)
			}
			return s.outcomes("cancelled", targets, names, errs)
		})
	}
	return c
}

// Where a message is when it is cancelled may change meanwhile: it is claimed, settled, retried. Then it is looked for
// again.
const (
	cancelTries = 5
	cancelPause = 50 * time.Millisecond
)

// cancel cancels a message in each group, or in one.
func (s session) cancel(ctx context.Context, l located, group string) error {
	var problems error
	var over []string
	done := 0
	for _, v := range l.views {
		switch {
		case group != "" && v.Group != "" && v.Group != group:
		case v.State == driver.StateDead || v.State == driver.StateDone || v.State == driver.StateInvalid:
			over = append(over, describeState(v))
		default:
			problems = errors.Join(problems, s.cancelIn(ctx, l, v))
			done++
		}
	}
	switch {
	case done > 0:
		return problems
	case len(over) > 0:
		return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %s is %s", l.name, strings.Join(over, ", ")),
			"what has ended cannot be cancelled; 'ferry msg rm' removes a dead letter", nil)
	}
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("group %q has no message %s", group, l.name),
		"leave --group out to find it in any group", nil)
}

// cancelIn cancels a message as one group sees it.
func (s session) cancelIn(ctx context.Context, l located, v driver.Entry) error {
	for try := 1; ; try++ {
		var err error
		if v.State == driver.StateInflight {
			err = s.cancelRunning(ctx, v)
		} else {
			err = s.driver.Delete(ctx, []driver.Target{l.targetIn(v)})[0]
		}
		moved := errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrNotFound)
		if !moved || try == cancelTries {
			return err
		}
		select {
		case <-time.After(cancelPause):
		case <-ctx.Done():
			return err
		}
		again, lookErr := locate(ctx, s.driver, l.target.Topic, l.name)
		at := slices.IndexFunc(again.views, func(x driver.Entry) bool { return x.Group == v.Group || v.Group == "" })
		if lookErr != nil || at < 0 {
			return err
		}
		v = again.views[at]
	}
}

// cancelRunning tells the process that has a message to drop it: the one whose worker holds it or, where that is not
// known, each that consumes the group.
func (s session) cancelRunning(ctx context.Context, v driver.Entry) error {
	all, err := cluster.Members(ctx, s.broker)
	if err != nil {
		return err
	}
	ask := membersWith(all, func(w cluster.WorkerInfo) bool { return w.Instance == v.Instance })
	if len(ask) == 0 {
		ask = membersWith(all, func(w cluster.WorkerInfo) bool {
			return slices.ContainsFunc(w.Handlers,
				func(h cluster.HandlerInfo) bool { return h.Topic == v.Topic && h.Group == v.Group })
		})
	}
	errs := make([]error, len(ask))
	var told sync.WaitGroup
	for i, m := range ask {
		told.Go(func() {
			errs[i] = cluster.Tell(ctx, s.broker, m.Name+"/"+m.Incarnation,
				cluster.Command{Do: cluster.Cancel, Topic: v.Topic, Group: v.Group, ID: v.ID})
		})
	}
	told.Wait()
	if slices.Contains(errs, nil) {
		return nil
	}
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("message %s is in flight in group %s, held by %s, and no "+
		"process that joined has it", v.ID, v.Group, v.Instance),
		"its process has to join (cluster.Join); 'ferry worker ls' lists those that did", errors.Join(errs...))
}

// membersWith returns those that have such a worker.
func membersWith(all []cluster.Info, fits func(cluster.WorkerInfo) bool) []cluster.Info {
	return slices.DeleteFunc(slices.Clone(all), func(i cluster.Info) bool { return !slices.ContainsFunc(i.Workers, fits) })
}
