package ferry

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/unique"
)

// Options of a Broker. The zero value is a good one.
type Options struct {
	Hooks Hooks
	// Logger gets what cannot be returned to anybody. Defaults to slog.Default; slog.New(slog.DiscardHandler) is silent.
	Logger *slog.Logger
	// Codecs encode and decode values by content type: the first one encodes, unless a publish asks for another, and each
	// decodes what has its type. Defaults to JSON, then raw bytes.
	Codecs []codec.Codec
	// Filters change bodies between codec and broker, compression and encryption for example: in this order on the way in,
	// and back in reverse before any handler. Whoever consumes needs the filters of whoever publishes. Defaults to none.
	Filters []codec.Filter
	// MaxAsync bounds how many asynchronous publishes are under way. Defaults to 10,000.
	MaxAsync int
	// FailWhenFull makes an asynchronous publish beyond MaxAsync fail with ErrFull instead of waiting for room.
	FailWhenFull bool
}

// Broker publishes to one backend, and is what workers consume from. It is safe for concurrent use.
type Broker struct {
	driver  driver.Driver
	sender  sender // publishes to it
	names   *unique.Keeper
	caps    driver.Capabilities
	hooks   Hooks
	log     *slog.Logger
	codecs  []codec.Codec
	filters filters

	partitions driver.Log // nil where the driver has none
	sharesSync bool

	gather *batcher // concurrent single publishes
	async  *asyncPublisher

	closed atomic.Bool
}

// New returns a Broker on an open driver, which it owns from now on.
func New(d driver.Driver, o Options) (*Broker, error) {
	switch {
	case d == nil:
		return nil, driver.NewError(ErrInvalid, "the driver is nil", "open one, driver/memory for example", nil)
	case o.MaxAsync < 0:
		return nil, driver.NewError(ErrInvalid, "MaxAsync is negative", "leave it zero for the default", nil)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if len(o.Codecs) == 0 {
		o.Codecs = []codec.Codec{codec.JSON, codec.Raw}
	}
	if err := checkCodecs(o.Codecs); err != nil {
		return nil, err
	}
	if o.MaxAsync == 0 {
		o.MaxAsync = 10_000
	}
	fs, err := newFilters(o.Filters, d.Capabilities().MaxBody, o.Logger)
	if err != nil {
		return nil, err
	}
	names := unique.New(d)
	to := newSender(d, names)
	senders := gatherSenders
	_, shares := d.(driver.SyncSharer)
	if shares {
		senders = syncedSenders
	}
	return &Broker{
		driver:     d,
		sender:     to,
		names:      names,
		caps:       d.Capabilities(),
		sharesSync: shares,
		hooks:      o.Hooks.Guarded(o.Logger),
		log:        o.Logger,
		codecs:     o.Codecs,
		filters:    fs,
		partitions: driver.LogOf(d),
		gather:     newBatcher(to, senders),
		async:      newAsyncPublisher(to, o.MaxAsync, o.FailWhenFull),
	}, nil
}

// checkCodecs refuses codecs of which one would never decode anything.
func checkCodecs(codecs []codec.Codec) error {
	for i, c := range codecs {
		if c == nil {
			return driver.NewError(ErrInvalid, fmt.Sprintf("codec %d of %d is nil", i+1, len(codecs)), "leave it out", nil)
		}
		other, found := codec.ForContentType(c.ContentType(), codecs[:i]...)
		if !found {
			continue
		}
		if _, same := codec.ForContentType(other.ContentType(), c); same { // not only by a suffix such as +json
			return driver.NewError(ErrInvalid, fmt.Sprintf("two codecs for content type %q", c.ContentType()),
				"keep one of them, and give the other to single publishes with ferry.Codec", nil)
		}
	}
	return nil
}

// Driver returns the driver underneath, for inspection and management: EnsureTopic, EnsureGroup, Pause, Topics, Stats,
// Browse, Get, Delete and more. What these take and return has its names in this package; of what is rarer (resets,
// audits, named values) they are in package driver.
func (b *Broker) Driver() driver.Driver { return b.driver }

// Log returns what only a broker with partitions can do: tell of each how far a group has come, replay a range, trim.
// ErrUnsupported for the others.
func (b *Broker) Log() (Log, error) {
	if b.partitions == nil {
		return nil, driver.NewError(ErrUnsupported, "the "+b.caps.Driver+" driver keeps no log",
			"use a redisstream:// or kafka:// broker", nil)
	}
	return b.partitions, nil
}

// Hooks returns the hooks, safe to call, for packages that run beside the broker. Unset ones are nil.
func (b *Broker) Hooks() Hooks { return b.hooks }

// Logger returns the logger of the broker.
func (b *Broker) Logger() *slog.Logger { return b.log }

// Flush waits until every asynchronous publish so far has its receipt.
func (b *Broker) Flush(ctx context.Context) error { return b.async.flush(ctx) }

// Close stops accepting publishes, waits for asynchronous ones until ctx ends, and closes the driver. A publish that is
// under way meanwhile either succeeds or returns ErrClosed.
func (b *Broker) Close(ctx context.Context) error {
	if b.closed.Swap(true) {
		return nil
	}
	flushErr := b.async.flush(ctx)
	b.closeNames(ctx)
	err := b.driver.Close(ctx) // fails what still waits, so that the senders end
	b.async.wait()
	b.gather.wait()
	if err == nil {
		err = flushErr
	}
	return err
}
