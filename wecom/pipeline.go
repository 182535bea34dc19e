package wecom

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/schedule"
	"github.com/ferrymq/ferry/worker"
)

// Options of a Pipeline. The zero value is a good one.
type Options struct {
	// Other is told of callbacks that are not about messages. An error has the vendor call again. Defaults to none: they
	// are counted, and acknowledged.
	Other func(ctx context.Context, n Notice) error
	// GroupOf says in which group a user is. It is asked for every message. Defaults to Config.Users.
	GroupOf func(user string) string
	// Pulls is how many accounts are pulled at once by this process. Defaults to 8.
	Pulls int
	// Lease is how soon another process goes on with the pull of one that was killed. At least Capabilities.MinLease.
	// Defaults to what the broker recommends.
	Lease time.Duration
	// MediaCache is how many bytes of downloaded files are kept in memory. Defaults to 64 MiB; less than zero: none.
	MediaCache int64
	// Logger gets what nobody is told otherwise. It never gets a secret or a text of a customer. Defaults to that of the
	// broker.
	Logger *slog.Logger
}

// Pipeline takes callbacks, pulls messages and publishes them. It is safe for concurrent use.
type Pipeline struct {
	broker  *ferry.Broker
	kv      driver.KV
	config  Config
	options Options
	keys    *Keys // nil: callbacks are taken elsewhere
	client  *Client
	groupOf func(user string) string
	log     *slog.Logger
	turn    time.Duration
	stats   counters
}

// New checks the configuration and returns a Pipeline. It starts nothing: Run does. Close it in the end.
func New(b *ferry.Broker, c Config, o Options) (*Pipeline, error) {
	if b == nil {
		return nil, driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one", nil)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if o.Pulls == 0 {
		o.Pulls = 8
	}
	if o.MediaCache == 0 {
		o.MediaCache = 64 << 20
	}
	p := &Pipeline{broker: b, kv: b.Driver().KV(), config: c, options: o, groupOf: o.GroupOf, log: o.Logger,
		turn: pullTurn}
	if p.groupOf == nil {
		p.groupOf = groupsOf(c.Users)
	}
	if p.log == nil {
		p.log = b.Logger()
	}
	var err error
	if len(c.Keys) > 0 {
		if p.keys, err = NewKeys(c.Corp, c.Keys...); err != nil {
			return nil, err
		}
	}
	p.client, err = newClient(p.kv, &c, o.MediaCache)
	return p, err
}

// Format names it alone: fmt would show secrets in fields that are not exported.
func (p *Pipeline) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, "wecom.Pipeline of "+p.config.Corp)
}

// Close ends idle connections to the vendor.
func (p *Pipeline) Close() { p.client.Close() }

// Client returns what calls the vendor: replies, sessions, files.
func (p *Pipeline) Client() *Client { return p.client }

// Run pulls until ctx ends, and then returns nil. Any number of programs may run it.
func (p *Pipeline) Run(ctx context.Context) error {
	s, err := schedule.New(p.broker, schedule.Options{})
	if err != nil {
		return err
	}
	if err := p.declare(ctx, s); err != nil {
		return err
	}
	w := worker.New(p.broker, worker.Options{Concurrency: p.options.Pulls, Lease: p.options.Lease, Logger: p.log})
	worker.HandleBatch(w, p.config.PullTopic, p.handlePulls, worker.BatchWait(0), worker.MaxAttempts(ferry.Unlimited),
		worker.Retry(ferry.Exponential(time.Second, time.Minute)))
	ctx, done := context.WithCancel(ctx)
	scheduled := make(chan error, 1)
	go func() {
		defer done() // a schedule that cannot run ends the pulls, too
		scheduled <- s.Run(ctx)
	}()
	err = w.Run(ctx)
	done()
	if failed := <-scheduled; err == nil {
		err = failed
	}
	return err
}

// declare puts the schedule that pulls what no callback told of.
func (p *Pipeline) declare(ctx context.Context, s *schedule.Scheduler) error {
	tick, err := ferry.NewMessage(ctx, p.broker, p.config.PullTopic, pullJob{})
	if err != nil {
		return err
	}
	return s.Put(ctx, schedule.Schedule{Name: "wecom/" + p.config.Corp, Spec: fmt.Sprintf("@every %s", p.config.Poll),
		Message: tick})
}

// other is what becomes of a notice that is not about messages.
func (p *Pipeline) other(ctx context.Context, n Notice) error {
	p.stats.otherNotice()
	if p.options.Other == nil {
		return nil
	}
	return p.options.Other(ctx, n)
}
