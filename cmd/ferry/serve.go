package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/server"
	"github.com/ferrymq/ferry/server/config"
)

const serveLong = `Serves a broker to operators and other programs, on one port. It listens at 127.0.0.1:7070 and
prints a link to log in with, once. For an address that others reach, make a user, a token or an identity provider
first.

Several servers can serve one broker: users, tokens and sessions lie in the broker. Everything can be set in
a file (--config, docs/server.md); a flag, or its FERRY_* variable, counts more than the file. SIGHUP has the
file and the certificate read again: limits, the level of the log, and channels, rules and silences change at
once, the rest at the next start. It stops at SIGTERM or Ctrl-C; a second one stops at once.

Bodies of MessagePack and CBOR are shown decoded, those of Protobuf by their field numbers, and those of Avro where
FERRY_SCHEMA_REGISTRY, or the file that FERRY_SCHEMA_REGISTRY_FILE names, has the URL of the schema registry.`

const serveExample = `  FERRY_BROKER=redis://localhost:6379 ferry serve
  ferry serve --broker disk:///var/lib/ferry
  ferry serve --config ferry.yaml
  ferry serve --config ferry.yaml --listen 0.0.0.0:7070`

// serveOptions are the flags of ferry serve.
type serveOptions struct{ config, broker, listen, store string }

func newServe(p process) *cobra.Command {
	var o serveOptions
	c := &cobra.Command{Use: "serve", Short: "Serve a broker to operators and other programs", Long: serveLong,
		Example: serveExample, Args: asUsed,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), p) }}
	c.Flags().StringVar(&o.config, "config", "", "file of the configuration, ferry.yaml for example")
	c.Flags().StringVar(&o.broker, "broker", "",
		"URL of the broker; one with a password belongs in FERRY_BROKER or FERRY_BROKER_FILE")
	c.Flags().StringVar(&o.store, "store", "",
		"URL of the guard store of the workers, for limits and breakers; one with a password belongs in FERRY_STORE")
	c.Flags().StringVar(&o.listen, "listen", "", "address to listen at (default: "+server.DefaultAddress+")")
	return c
}

// read returns the configuration, with the flags in it.
func (o serveOptions) read() (config.File, error) {
	var f config.File
	if o.config != "" {
		var err error
		if f, err = config.Read(o.config); err != nil {
			return f, err
		}
	}
	if o.broker != "" {
		f.Broker = o.broker
	}
	if o.listen != "" {
		f.Listen = o.listen
	}
	if o.store != "" {
		f.Store = o.store
	}
	return f, nil
}

// run owns the broker and the server, and returns when both have ended.
func (o serveOptions) run(ctx context.Context, p process) (err error) {
	f, err := o.read()
	if err != nil {
		return err
	}
	if f.Broker == "" {
		return usage("no broker is given", brokerHint)
	}
	secret, _, err := variable("FERRY_OIDC_SECRET", p.env)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(f.Level())
	logger := slog.New(f.Handler(p.err, level))
	filters, err := p.filters()
	if err != nil {
		return err
	}
	codecs, err := p.codecs()
	if err != nil {
		return err
	}
	broker, err := p.open(ctx, withScheme(f.Broker), ferry.Options{Logger: logger, Filters: filters})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close(context.WithoutCancel(ctx))) }()
	options := f.Options(auth.NewSecret(secret))
	options.Broker, options.Logger = broker, logger
	service, err := openWeCom(broker, f.WeCom, p.env)
	if err != nil {
		return err
	}
	options.Problems = wecomProblems(service)
	store, err := p.guards(ctx, f)
	if err != nil {
		return err
	}
	if store != nil {
		defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	}
	told, err := openNotices(broker, f, store, p.env)
	if err != nil {
		return err
	}
	api := admin.Options{Guards: store, Masks: f.Masks, Codecs: codecs, Environment: f.Environment, Watch: told.watch,
		NotifyTopic: f.Notify.Topic}
	if options.Mounts, err = mounts(broker, api, service); err != nil {
		return err
	}
	s, err := server.New(ctx, options)
	if err != nil {
		return err
	}
	hangups := onHangup() // before anybody is told that there is somebody to send one to
	defer signal.Stop(hangups)
	if err := p.announce(s, broker); err != nil {
		return err
	}
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reload := reloader{o, p, s, told, level, logger}
	background.Go(func() { reload.run(ctx, hangups) })
	duties := told.duties()
	if service != nil {
		defer service.Close()
		duties = append(duties, duty{"WeCom is not pulled", service.Run})
	}
	for _, d := range duties {
		background.Go(func() { d.do(ctx, cancel, logger) })
	}
	return s.Run(ctx)
}

// guards opens the store that the guards of workers share: the one that is named, or that belongs to the broker. It
// returns nil if there is none.
func (p process) guards(ctx context.Context, f config.File) (guard.Store, error) {
	if f.Store != "" {
		guards := &guardCommand{remote: &remote{process: p, url: f.Store}}
		return guards.openStore(ctx)
	}
	s, err := open.Guards(ctx, withScheme(f.Broker))
	if errors.Is(err, ferry.ErrUnsupported) || errors.Is(err, ferry.ErrRefused) { // Kafka, or another server's
		return nil, nil
	}
	return s, err
}

// announce tells people where the server is.
func (p process) announce(s *server.Server, broker *ferry.Broker) error {
	lines := []string{"✓ broker   " + brokerName(broker), "✓ running  " + s.URL()}
	if s.LoginURL() != "" {
		lines = append(lines, "✓ console  "+s.LoginURL(), "           logs in once, within 15 minutes")
	} else {
		lines = append(lines, "✓ console  "+s.URL()+"/")
	}
	for _, line := range lines {
		if err := p.sayf("%s", line); err != nil {
			return err
		}
	}
	return nil
}

// onHangup returns a channel of SIGHUP.
func onHangup() chan os.Signal {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return hangups
}

// reloader takes over what can change while the server runs.
type reloader struct {
	serveOptions
	process
	server *server.Server
	told   notices
	level  *slog.LevelVar
	log    *slog.Logger
}

// run reads the configuration again at each hangup.
func (r reloader) run(ctx context.Context, hangups <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hangups:
		}
		begin := time.Now()
		if r.reload(ctx) {
			r.log.WarnContext(ctx, "the configuration was reloaded", "took", time.Since(begin))
		}
	}
}

// reload takes each part over, or says that it stays as it was.
func (r reloader) reload(ctx context.Context) bool {
	f, err := r.read()
	if err != nil {
		r.log.ErrorContext(ctx, "the configuration was not reloaded; everything stays as it was", "error", err)
		return false
	}
	limits, told := r.server.Reload(f.ServerLimits()), r.told.reload(f, r.env)
	if limits != nil {
		r.log.ErrorContext(ctx, "limits and the certificate were not reloaded; they stay as they were", "error", limits)
	}
	if told != nil {
		r.log.ErrorContext(ctx, "channels, rules and silences were not reloaded; they stay as they were", "error", told)
	}
	r.level.Set(f.Level())
	return limits == nil && told == nil
}
