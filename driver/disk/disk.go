// Package disk is the durable broker inside the process: the engine of package memory over a store in a directory.
//
// One process owns a directory. What a publish promised survives kill -9 of the process and, unless [Interval] was
// chosen, a power loss. Bodies are read from the store when they are claimed, so that a backlog may be larger than
// memory; what lies in memory are the indexes. docs/disk.md shows the layout, and what is written when.
//
// Where things are:
//
//	disk       options, New, Close
//	store      the engine's store over Pebble: read, write and batch say how
//	readers    those who must leave before Pebble is closed
//	committer  gathers the steps of concurrent callers into one write and one fsync
//	tables     where the tables of Pebble end, so that messages are not rewritten
//	reclaim    gives the disk back that drained topics took
//	failure    the first one stops everything
//	walfs      decides when the log of Pebble is synced, and keeps files private
//	directory  whose directory it is, and which format
//	owner      the lock, with the pid of its owner
//	space      refuses messages before the disk is full
//	ballast    a part of the reserve that is really there
//	backup     a consistent copy while everything runs
//	check      reads every record of a store that nobody uses
//	diagnose   what an operator should know
package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/engine"
)

// Options of a Driver. Only Dir is required.
type Options struct {
	// Dir holds the data. It is made if it does not exist, readable by its owner only. Required.
	Dir string
	// MustExist refuses a directory without a store, with ErrNotFound, instead of making one.
	MustExist bool
	// Sync says when what is written is forced to the disk. Defaults to Always.
	Sync Sync
	// MaxBody is the largest body in bytes. Defaults to 4 MiB.
	MaxBody int
	// MaxMessages bounds what is held in all topics together, dead letters and kept messages included; beyond it
	// publishing answers ErrFull. Defaults to 50 million.
	MaxMessages int64
	// Reserve is how much of the disk stays free: with less, publishing answers ErrFull while consuming goes on. On Linux
	// an eighth of it, at most 32 MiB, is laid out in a file, so that others cannot take it. Defaults to 256 MiB.
	Reserve int64
	// CacheBytes is how much content of messages may stay in memory, so that fresh ones are not read from the store.
	// Defaults to 64 MiB.
	CacheBytes int64
	// Window is how many ready messages of each topic are in memory. What lies behind them is read when it is their turn.
	// Defaults to 131,072.
	Window int
	// Logger is told about start-up and trouble in the background. Defaults to slog.Default.
	Logger *slog.Logger
	// Broker are the options of the Broker that Open returns.
	Broker ferry.Options

	fs           vfs.FS // tests put faults below
	snapshotFrom int    // and let small topics be described at the end, too
	sweepEvery   int    // and be swept
	layers       int    // and compacted
}

// Sync says when what is written is forced to the disk.
type Sync struct{ every time.Duration }

// Always makes every publish wait until it survives a power loss. Concurrent publishes share one wait.
var Always = Sync{}

// Interval forces what was written to the disk this often. A publish survives kill -9 at once, and a power loss after
// this time at most.
func Interval(every time.Duration) Sync { return Sync{every: every} }

// always reports whether a publish waits for the disk.
func (s Sync) always() bool { return s.every == 0 }

// String returns "always" or "interval 1s".
func (s Sync) String() string {
	if s.always() {
		return "always"
	}
	return "interval " + s.every.String()
}

// Defaults of Options.
const (
	DefaultMaxBody     = 4 << 20
	DefaultMaxMessages = 50_000_000
	DefaultReserve     = 256 << 20
	DefaultCacheBytes  = 64 << 20
	DefaultWindow      = 131_072

	// lazily is how long settlements may stay unsynced where publishes never do.
	lazily = 100 * time.Millisecond
)

// Driver is a broker in a directory. Its methods come from the engine, but those of its own.
type Driver struct {
	*broker
	o     Options
	dir   *directory
	store *store

	close sync.Once
	err   error
}

// broker keeps the embedded engine out of the documentation and out of reach.
type broker = engine.Engine

var _ driver.SyncSharer = (*Driver)(nil)

// SharesSync tells that publishers who wait at once do so for one sync: see committer.
func (d *Driver) SharesSync() {}

// New opens the store in o.Dir, or makes a new one, and reads what is in it. Close it when it is no longer used. It
// returns when ctx ends, although a store that is being opened cannot be interrupted: it is closed, and its directory
// given up, when it is open.
func New(ctx context.Context, o Options) (*Driver, error) {
	if ctx.Done() == nil {
		return openDriver(ctx, o)
	}
	var d *Driver
	opened := make(chan error, 1)
	go func() {
		var err error
		d, err = openDriver(ctx, o)
		opened <- err
	}()
	select {
	case err := <-opened:
		return d, err
	case <-ctx.Done():
	}
	go func() {
		if <-opened == nil {
			_ = d.Close(context.WithoutCancel(ctx)) // nobody is there to be told
		}
	}()
	return nil, driver.NewError(driver.ErrNotApplied, fmt.Sprintf("the store in %s was not open in time", o.Dir),
		"give it more time", context.Cause(ctx))
}

func openDriver(ctx context.Context, o Options) (*Driver, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	dir, err := enter(o.fs, o.Dir, o.MustExist)
	if err != nil {
		return nil, err
	}
	d := &Driver{o: o, dir: dir}
	if d.store, err = openStore(dir, o); err != nil {
		return nil, errors.Join(err, dir.leave())
	}
	level := driver.Synced
	if !o.Sync.always() {
		level = driver.Written
	}
	d.broker = engine.New(engine.Options{
		Capabilities: engine.Capabilities("disk", o.MaxBody, level, driver.Written, driver.Synced),
		MaxMessages:  o.MaxMessages, Store: d.store, CacheBytes: o.CacheBytes, Window: o.Window,
		SnapshotFrom: o.snapshotFrom, SweepEvery: o.sweepEvery,
	})
	if err := d.restore(ctx); err != nil {
		return nil, errors.Join(err, d.store.close(), dir.leave())
	}
	return d, nil
}

// restore builds the indexes, and tells how far it is.
func (d *Driver) restore(ctx context.Context) error {
	start := time.Now()
	err := d.broker.Restore(ctx, func(topic string, n int) {
		d.o.Logger.Info("reading the store", "dir", d.o.Dir, "topic", topic, "messages", n, "after", time.Since(start))
	})
	if err != nil {
		return d.dir.errUnreadable(err)
	}
	d.o.Logger.Info("the store is open", "dir", d.o.Dir, "sync", d.o.Sync.String(), "took", time.Since(start))
	return nil
}

// resolved fills in defaults, and says what is wrong.
func (o Options) resolved() (Options, error) {
	switch {
	case o.Dir == "":
		return o, driver.NewError(driver.ErrInvalid, "no directory is given", "set Options.Dir", nil)
	case o.MaxBody < 0 || o.MaxMessages < 0 || o.Reserve < 0 || o.CacheBytes < 0 || o.Window < 0 || o.Sync.every < 0:
		return o, driver.NewError(driver.ErrInvalid, fmt.Sprintf("an option for %q is negative", o.Dir),
			"leave it zero for the default", nil)
	}
	o.MaxBody, o.MaxMessages = cmp.Or(o.MaxBody, DefaultMaxBody), cmp.Or(o.MaxMessages, DefaultMaxMessages)
	o.Reserve, o.CacheBytes = cmp.Or(o.Reserve, DefaultReserve), cmp.Or(o.CacheBytes, DefaultCacheBytes)
	o.Window = cmp.Or(o.Window, DefaultWindow)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

// Close releases what subscriptions hold, writes everything, and gives the directory up.
func (d *Driver) Close(ctx context.Context) error {
	d.close.Do(func() {
		d.err = errors.Join(d.broker.Close(ctx), d.store.close(), d.dir.leave())
	})
	return d.err
}
