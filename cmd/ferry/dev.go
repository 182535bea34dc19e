package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/server"
)

const devLong = `Starts a broker with a small shop as demo traffic: orders in order per customer, the mails
they cause a few seconds later, a report every ten seconds, and about 3 % failures, of which
most succeed when tried again and some end as dead letters. An alert fires while orders wait for
another try, and resolves; its notices are printed, and 'ferry alert ls' shows it. The topics of the
demo are its own (demo.orders, demo.mails, demo.reports, demo.notices): whatever else the broker
holds is left alone.

The broker lives in a directory (--dir): what was acknowledged survives a restart, and kill -9.
With --broker it is another one: memory://, redis://, kafka://host:9092... With --broker kafka and
no address, a Kafka broker runs inside this process, for development: it ends with the process.

Beside it runs a server (docs/server.md), with a link to log in once, and a token for programs: it is good
for a day. While ferry dev runs, the other commands reach its broker through the server:
FERRY_BROKER=ferry://127.0.0.1:7070 FERRY_TOKEN=... ferry topic ls

It stops at Ctrl-C (a second one stops at once), lets handlers finish, and then accounts for
every message.`

const devExample = `  ferry dev
  ferry dev --rate 200 --duration 30s
  ferry dev --dir /var/lib/ferry
  ferry dev --broker memory
  ferry dev --broker kafka
  FERRY_BROKER=redis://localhost:6379/0 ferry dev`

// devOptions are the flags of ferry dev.
type devOptions struct {
	broker   string
	dir      string // of the broker on disk, if no other is named
	rate     float64
	duration time.Duration
	noDemo   bool
	listen   string // address of the server; empty: none
	filters  []codec.Filter
	codecs   []codec.Codec
	inside   string // URL of a Kafka broker inside this process
}

func newDev(p process) *cobra.Command {
	var o devOptions
	var noServer bool
	c := &cobra.Command{
		Use:     "dev",
		Short:   "Run a broker with demo traffic, nothing else needed",
		Long:    devLong,
		Example: devExample,
		Args:    asUsed,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.check()
			if err == nil {
				o.filters, err = p.filters()
			}
			if err == nil {
				o.codecs, err = p.codecs()
			}
			if err != nil {
				return err
			}
			if o.broker == "" {
				o.broker = diskURL(o.dir)
			}
			if noServer {
				o.listen = ""
			}
			return o.run(c.Context(), newTerminal(p))
		},
	}
	c.Flags().StringVar(&o.broker, "broker", "", "URL of the broker, or just its scheme (default: the directory of --dir)")
	c.Flags().StringVar(&o.dir, "dir", ".ferry", "directory of the broker on disk, made if it does not exist")
	c.Flags().Float64Var(&o.rate, "rate", 20, "orders per second; a quarter as many mails follow")
	c.Flags().DurationVar(&o.duration, "duration", 0, "stop after this time, 10s for example (default: run until Ctrl-C)")
	c.Flags().BoolVar(&o.noDemo, "no-demo", false, "only the broker, no traffic")
	c.Flags().StringVar(&o.listen, "listen", server.DefaultAddress,
		"address of the server; if the default is taken, another port")
	c.Flags().BoolVar(&noServer, "no-server", false, "no server beside the broker")
	return c
}

func (o devOptions) check() error {
	switch {
	case !(o.rate > 0 && o.rate <= 10_000): // also what is not a number
		return usage(fmt.Sprintf("--rate %v is out of range", o.rate), "use more than 0 and at most 10000, or --no-demo")
	case o.duration < 0:
		return usage(fmt.Sprintf("--duration %v is negative", o.duration),
			"use 10s for example, or leave it out to run until Ctrl-C")
	}
	return nil
}

// run owns everything that ferry dev starts, and returns when all of it has ended.
func (o devOptions) run(ctx context.Context, t *terminal) (err error) {
	m := newMeter()
	if wantsFakeKafka(o.broker) {
		fake, url, err := startFakeKafka(o.broker)
		if err != nil {
			return err
		}
		defer fake.close()
		o.broker, o.inside = url, url
	}
	broker, err := openBroker(ctx, o.broker, ferry.Options{Hooks: m.hooks(), Logger: quiet, Filters: o.filters})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close(context.WithoutCancel(ctx))) }()
	begin := time.Now()
	alerts := &demoAlerts{} // without the demo nothing is evaluated
	if !o.noDemo {
		if alerts, err = newDemoAlerts(broker); err != nil {
			return err
		}
	}
	s, err := o.newServer(ctx, broker, alerts)
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	served := s.run(running)
	if err := o.welcome(ctx, t, broker, s); err != nil {
		cancel()
		return errors.Join(err, served())
	}
	if o.duration > 0 { // not a deadline, which would cut off calls under way
		end := time.AfterFunc(o.duration, cancel)
		defer end.Stop()
	}
	var group sync.WaitGroup
	var demoErr, alertErr error
	if !o.noDemo {
		group.Go(func() {
			defer cancel()
			demoErr = newDemo(broker, o.rate).run(running)
		})
		group.Go(func() {
			defer cancel()
			alertErr = alerts.run(running)
		})
	}
	watchErr := status{terminal: t, driver: broker.Driver(), meter: m, notices: alerts.lines}.watch(running)
	cancel()
	if ctx.Err() != nil {
		t.printf("\nstopping: handlers finish first; a second Ctrl-C stops at once\n")
	}
	group.Wait()
	serveErr := served()
	final := context.WithoutCancel(ctx)
	if err := errors.Join(demoErr, alertErr, watchErr, serveErr,
		summarize(final, t, broker.Driver(), time.Since(begin))); err != nil {
		return err
	}
	o.afterwards(t, broker)
	return nil
}
