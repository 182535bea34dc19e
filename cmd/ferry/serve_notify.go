package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/server/config"
)

// notices are what a server tells people by. Without channels there is no hub, and without rules no watch.
type notices struct {
	broker *ferry.Broker
	hub    *notify.Hub
	watch  *alert.Watch
}

// openNotices makes what the file configures, with the secrets of the environment. Rules can be about the guards of the
// store, if there is one.
func openNotices(b *ferry.Broker, f config.File, guards guard.Store, env func(string) (string, bool)) (n notices,
	err error) {
	n.broker = b
	if len(f.Notify.Channels) == 0 {
		return n, nil
	}
	o, err := hubOptions(f, env)
	if err != nil {
		return n, err
	}
	if n.hub, err = notify.New(b, o); err != nil || !f.Alerts.Watches() {
		return n, err
	}
	rules := f.Alerts.Options()
	rules.Guards = guards
	n.watch, err = newWatch(b, n.hub, rules)
	return n, err
}

// hubOptions makes the channels of the file.
func hubOptions(f config.File, env func(string) (string, bool)) (notify.Options, error) {
	return f.Notify.Options(func(name string) (string, bool, error) { return variable(name, env) })
}

// reload takes over channels, rules and silences of the file. What is wrong changes nothing.
func (n notices) reload(f config.File, env func(string) (string, bool)) error {
	if n.hub == nil && len(f.Notify.Channels) > 0 || n.watch == nil && f.Alerts.Watches() {
		return driver.NewError(ferry.ErrUnsupported, "the configuration has its first channels or rules",
			"start the server again: there is nobody yet to take them over", nil)
	}
	if n.hub == nil {
		return nil
	}
	o, err := hubOptions(f, env)
	if err != nil {
		return err
	}
	if err := n.try(o, f.Alerts.Options()); err != nil {
		return err
	}
	if err := n.hub.Reload(o); err != nil || n.watch == nil {
		return err
	}
	return n.watch.Reload(f.Alerts.Options())
}

// try says what a hub and a watch with these options would refuse, so that not one of them is reloaded alone.
func (n notices) try(o notify.Options, rules alert.Options) error {
	hub, err := notify.New(n.broker, o)
	if err != nil || n.watch == nil {
		return err
	}
	rules.Hub, rules.EventsOnly = hub, true // it is never run
	_, err = alert.New(n.broker, rules)
	return err
}

// newWatch returns a watch that looks at everything the monitor knows.
func newWatch(b *ferry.Broker, hub *notify.Hub, o alert.Options) (*alert.Watch, error) {
	collector, err := monitor.NewCollector(b, monitor.CollectorOptions{Processes: cluster.Processes, Partitions: true})
	if err != nil {
		return nil, err
	}
	o.Hub, o.Collector = hub, collector
	return alert.New(b, o)
}

// duties are what runs beside the server.
func (n notices) duties() []duty {
	var all []duty
	if n.hub != nil {
		all = append(all, duty{"notifications are not sent", func(ctx context.Context) error {
			err := n.hub.Run(ctx)
			return errors.Join(err, n.hub.Close())
		}})
	}
	if n.watch != nil {
		all = append(all, duty{"alerts are not evaluated", n.watch.Run})
	}
	return all
}

// duty is something that a server does until its context ends, and what is the matter when it fails.
type duty struct {
	failure string
	run     func(ctx context.Context) error
}

// do runs the duty. A server that does not do what it is configured for ends.
func (d duty) do(ctx context.Context, end func(), log *slog.Logger) {
	defer end()
	if err := d.run(ctx); err != nil {
		log.ErrorContext(ctx, d.failure, "error", err)
	}
}
