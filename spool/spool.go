// Package spool keeps publishing while the broker is away: messages go to a store beside the program, in order of their
// keys, and from there to the broker as soon as it answers.
//
// [New] wraps the driver of a broker. What is published goes to that broker, [Driver.Publish]; only what it has not
// taken goes to the local store, and its receipt says so (Receipt.Spooled). Everything else passes through. Package
// spool/spooldisk opens the local store in a directory that several processes share.
//
// Where things are:
//
//	spool      options, New, Close
//	publish    which way a message goes
//	store      what goes to the local store, and what does not fit
//	backlog    which keys have something in the store, and how much there is
//	record     the stored form, and what is left of delays and times to live
//	breaker    a broker that is away is asked once a second
//	drain      from the local store to the broker
//	adopt      from the store of a process that died to ours
//	emergency  the file of the day, where the store is full
//	stats      figures and hooks
package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Options of a Driver. The zero value is a good one.
type Options struct {
	// MaxMessages and MaxBytes bound what waits in the local store; beyond it publishing answers ErrFull. They default to
	// 1 million and 1 GiB.
	MaxMessages, MaxBytes int64
	// Try is how long the broker has to answer a publish before it goes to the local store; at most half of the time that
	// the caller allows. Defaults to 2 s.
	Try time.Duration
	// Every is how often a broker that is away is tried. Defaults to 1 s.
	Every time.Duration
	// Emergency is a directory that gets spool-YYYYMMDD.jsonl when the local store is full or broken: one message on each
	// line, synced. They are acknowledged, and published by hand ('ferry spool replay FILE'): their keys are not in order
	// any more. Defaults to none.
	Emergency string
	// Orphan opens the local store of a process that died, or returns nil where there is none. What waits in it is taken
	// over: before New returns, and every AdoptEvery (30 s by default) after that. Defaults to none.
	Orphan     func(ctx context.Context) (driver.Driver, error)
	AdoptEvery time.Duration
	Hooks      Hooks
	// Logger is told when the broker is away and back, and what nobody else can be told. Defaults to slog.Default.
	Logger *slog.Logger
}

// Defaults of Options.
const (
	DefaultMaxMessages = 1_000_000
	DefaultMaxBytes    = 1 << 30
	DefaultTry         = 2 * time.Second
	DefaultEvery       = time.Second
	DefaultAdoptEvery  = 30 * time.Second
)

// Driver is the driver of a broker whose publishes survive an outage of it.
type Driver struct {
	main  // everything but Publish and Close
	local driver.Driver
	o     Options
	caps  driver.Capabilities

	breaker   *breaker
	backlog   *backlog
	emergency *emergency // nil without one
	count     counters

	mu       sync.Mutex
	drainers map[string]bool // by topic
	closed   bool
	shut     atomic.Bool
	stop     context.CancelFunc
	life     context.Context // of the drainers
	wait     sync.WaitGroup
	close    sync.Once
	err      error
}

// main keeps the embedded driver out of the documentation and out of reach.
type main = driver.Driver

var (
	_ driver.Driver  = (*Driver)(nil)
	_ driver.Wrapper = (*Driver)(nil)
)

// New returns a driver that publishes to broker, and to local while that is away. It owns both from now on. What a life
// before left in local goes to the broker first, key by key.
func New(ctx context.Context, broker, local driver.Driver, o Options) (*Driver, error) {
	o, err := o.resolved(broker, local)
	if err != nil {
		return nil, err
	}
	d := &Driver{main: broker, local: local, o: o, caps: broker.Capabilities(), drainers: map[string]bool{}}
	d.breaker, d.backlog = newBreaker(o.Every), newBacklog(o.MaxMessages, o.MaxBytes)
	d.life, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	if o.Emergency != "" {
		d.emergency = newEmergency(o.Emergency)
	}
	topics, err := d.restore(ctx)
	if err == nil && o.Orphan != nil {
		err = d.adoptFirst(ctx)
	}
	if err != nil {
		d.stop()
		d.wait.Wait()
		return nil, err
	}
	for _, t := range topics {
		d.drain(t)
	}
	if o.Orphan != nil {
		d.wait.Go(d.keepAdopting)
	}
	return d, nil
}

// resolved fills in defaults, and says what is wrong.
func (o Options) resolved(broker, local driver.Driver) (Options, error) {
	bad := func(text, hint string) error { return driver.NewError(driver.ErrInvalid, text, hint, nil) }
	switch {
	case broker == nil || local == nil:
		return o, bad("a spool needs two drivers", "open the broker, and the store beside the program")
	case o.MaxMessages < 0 || o.MaxBytes < 0 || o.Try < 0 || o.Every < 0 || o.AdoptEvery < 0:
		return o, bad("an option of the spool is negative", "leave it zero for the default")
	case local.Capabilities().MaxBody < broker.Capabilities().MaxBody+maxOverhead:
		return o, bad(fmt.Sprintf("the local store takes bodies of %d bytes, too little for what the broker takes (%d) and "+
			"%d more", local.Capabilities().MaxBody,
			broker.Capabilities().MaxBody, maxOverhead), "open it with a larger MaxBody")
	}
	setDefault(&o.MaxMessages, DefaultMaxMessages)
	setDefault(&o.MaxBytes, DefaultMaxBytes)
	setDefault(&o.Try, DefaultTry)
	setDefault(&o.Every, DefaultEvery)
	setDefault(&o.AdoptEvery, DefaultAdoptEvery)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Emergency != "" {
		return o, checkEmergency(o.Emergency)
	}
	return o, nil
}

func setDefault[T int64 | time.Duration](v *T, otherwise T) {
	if *v == 0 {
		*v = otherwise
	}
}

// restore counts what is in the local store, and returns the topics with something to drain.
func (d *Driver) restore(ctx context.Context) ([]string, error) {
	infos, err := d.local.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var topics []string
	for _, info := range infos {
		s, err := d.local.Stats(ctx, info.Topic)
		if err != nil {
			return nil, err
		}
		for _, g := range s.Groups {
			d.count.dead.Add(g.Dead)
		}
		if s.Messages == 0 {
			continue
		}
		topics = append(topics, info.Topic)
		for _, state := range []driver.State{driver.StateInflight, driver.StateWaiting, driver.StateReady} {
			if err := d.recount(ctx, info.Topic, state); err != nil {
				return nil, err
			}
		}
	}
	return topics, nil
}

// recount takes messages of one state into the backlog.
func (d *Driver) recount(ctx context.Context, topic string, state driver.State) error {
	q := driver.Query{Topic: topic, Group: driver.DefaultGroup, State: state, Limit: driver.MaxLimit}
	for {
		page, err := d.local.Browse(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			d.backlog.add(e.Message)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}

// Unwrap returns the driver of the broker.
func (d *Driver) Unwrap() driver.Driver { return d.main }

// Local returns the store beside the program, for a look at what waits in it and at its dead letters.
func (d *Driver) Local() driver.Driver { return d.local }

// Close stops draining, then closes the broker's driver and the local store. What waits in the store is there for the
// next life.
func (d *Driver) Close(ctx context.Context) error {
	d.close.Do(func() {
		d.mu.Lock()
		d.closed = true
		d.mu.Unlock()
		d.shut.Store(true)
		d.stop()
		err := d.main.Close(ctx) // ends publishes of drainers that wait for an answer
		d.wait.Wait()
		d.err = errors.Join(err, d.local.Close(ctx))
	})
	return d.err
}

func errClosed() error {
	return driver.NewError(driver.ErrClosed, "the spool is closed", "publish before Close", nil)
}
