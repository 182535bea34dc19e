package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// DefaultTopic is where notifications wait.
const DefaultTopic = "notifications"

// Options of a Hub. Channels are needed; zero is a good value for the rest.
type Options struct {
	// Channels are where targets can be, by the names that targets use.
	Channels map[string]Channel
	// Templates are what messages can be made of, by name.
	Templates map[string]MessageTemplate
	// Topic is where notifications wait. Hubs of one topic share their work and need the same channels. Defaults to
	// DefaultTopic.
	Topic string
	// Concurrency is how many targets Run sends to at once. Defaults to 16.
	Concurrency int
	// Retry is for messages that bring none. Defaults to Standard.
	Retry Retry
	// Timeout bounds one send. Defaults to 10 seconds.
	Timeout time.Duration
	// Keep is how long receipts are kept after their targets have ended: there is room for 6.4 million of targets.
	// Defaults to one hour.
	Keep time.Duration
	// Shed says what becomes of unimportant messages while many wait. Defaults to nothing.
	Shed Shed
	// Logger gets what nobody is told otherwise. Defaults to that of the broker.
	Logger *slog.Logger
}

// MessageTemplate is a title and a body with places for variables: see Template.
type MessageTemplate struct {
	Title  string `json:"title,omitempty"`
	Body   string `json:"body,omitempty"`
	Format Format `json:"format,omitempty"`
}

// Hub sends notifications. It is safe for concurrent use.
type Hub struct {
	broker  *ferry.Broker
	o       Options // all but Channels and Templates
	offer   atomic.Pointer[offer]
	records records
	places  destinations
	clock   *clock
	backlog backlog
	log     *slog.Logger

	reloading sync.Mutex
	replaced  []Channel // by Reload: a send may be under way
}

type parsedTemplate struct {
	title, body Template
	format      Format
}

// New returns a hub on a broker. It starts nothing: Send queues, and Run sends, here or in another process.
func New(b *ferry.Broker, o Options) (*Hub, error) {
	if b == nil {
		return nil, invalid("open one first, with open.URL for example", "the broker of the hub is nil")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.resolved(b)
	first, err := newOffer(o, nil)
	if err != nil {
		return nil, err
	}
	h := &Hub{broker: b, o: o, log: o.Logger, clock: newClock(time.Now())}
	h.records = records{kv: b.Driver().KV(), keep: o.Keep}
	h.places = destinations{kv: b.Driver().KV()}
	h.offer.Store(first)
	return h, nil
}

func (o Options) check() error {
	if len(o.Channels) == 0 {
		return invalid("give it at least one", "the hub has no channel")
	}
	for name, c := range o.Channels {
		if c == nil {
			return invalid("make it with New of its package", "channel %q of the hub is nil", name)
		}
		if err := driver.CheckName("channel", name); err != nil {
			return err
		}
	}
	if o.Concurrency < 0 || o.Timeout < 0 || o.Keep != 0 && o.Keep < driver.MinValueTTL {
		return invalid("leave them zero for the defaults", "Concurrency, Timeout or Keep of the hub is too small")
	}
	if o.Topic != "" {
		if err := driver.CheckTopic(o.Topic); err != nil {
			return err
		}
	}
	if err := o.Shed.check(); err != nil {
		return err
	}
	return o.Retry.check()
}

func (o Options) resolved(b *ferry.Broker) Options {
	if o.Topic == "" {
		o.Topic = DefaultTopic
	}
	if o.Concurrency == 0 {
		o.Concurrency = 16
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Keep == 0 {
		o.Keep = time.Hour
	}
	if o.Logger == nil {
		o.Logger = b.Logger()
	}
	o.Retry = o.Retry.resolved()
	return o
}

func (t MessageTemplate) parse() (p parsedTemplate, err error) {
	p.format = t.Format
	if p.title, err = ParseTemplate(t.Title); err != nil {
		return p, err
	}
	p.body, err = ParseTemplate(t.Body)
	return p, err
}

// Register adds the hub's handler to a worker of the caller's, in place of Run.
func (h *Hub) Register(w *worker.Worker, opts ...worker.HandlerOption) {
	worker.Handle(w, h.o.Topic, h.handle, opts...)
}

// Run sends what is queued until ctx ends, and announces the channels meanwhile: see NewSender. Any number of processes
// may run hubs of one topic.
func (h *Hub) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var announcing sync.WaitGroup
	announcing.Go(func() { h.announce(ctx) })
	defer announcing.Wait()
	defer stop()
	w := worker.New(h.broker, worker.Options{Concurrency: h.o.Concurrency, Logger: h.log})
	h.Register(w)
	return w.Run(ctx)
}

// Channels are the names of the channels, sorted.
func (h *Hub) Channels() []string { return slices.Sorted(maps.Keys(h.offer.Load().channels)) }

// Channel returns a channel by name, or nil.
func (h *Hub) Channel(name string) Channel { return h.offer.Load().channels[name] }

// Health asks every channel that can tell whether it works. It sends nothing.
func (h *Hub) Health(ctx context.Context) map[string]error {
	found := map[string]error{}
	for name, c := range h.offer.Load().channels {
		if c, ok := c.(healthy); ok {
			found[name] = c.Health(ctx)
		}
	}
	return found
}

// Close closes the channels, those that Reload replaced too, each once. Call it after Run has returned.
func (h *Hub) Close() error {
	h.reloading.Lock()
	defer h.reloading.Unlock()
	var errs []error
	var closed []closer
	for _, c := range slices.AppendSeq(h.replaced, maps.Values(h.offer.Load().channels)) {
		if c, ok := c.(closer); ok && !(reflect.TypeOf(c).Comparable() && slices.Contains(closed, c)) {
			closed = append(closed, c)
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// channel is that of a target, or why there is none.
func (h *Hub) channel(t Target) (Channel, error) {
	if c, ok := h.offer.Load().channels[t.Channel]; ok {
		return c, nil
	}
	return nil, &Error{Code: CodeInvalidConfig, Text: fmt.Sprintf("there is no channel %q", t.Channel),
		Hint: "the hub has " + strings.Join(h.Channels(), ", "), Cause: ferry.ErrInvalid}
}
