// Package rawpebble is the limit for a queue in a Pebble store: one record for each message, written, read and deleted.
//
// What is waiting is known in memory only, nothing is leased and nothing could be found again after a restart: what
// remains above it is the price of a queue.
package rawpebble

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ferrymq/ferry/bench/system"
)

const (
	// readers each read and delete a batch at a time.
	readers   = 2
	readBatch = 256
	// The sizes are those of our own store.
	writeBuffer = 32 << 20
	blockCache  = 32 << 20
)

// System is a Pebble store in a directory of its own.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "raw Pebble", Version: system.ModuleVersion("github.com/cockroachdb/pebble/v2"),
		Settings: fmt.Sprintf("publish: one record of an 8-byte key and the body, or 100 of them, in a batch committed "+
			"with Sync; drain: %d readers, each reads %d records by an iterator and deletes them in a batch without Sync; "+
			"write buffer of 32 MiB, block cache of 32 MiB", readers, readBatch),
		Why: "the writes that any queue in Pebble must do; Pebble itself lets concurrent commits share one sync; the sizes " +
			"are those of our own store",
	}
}

// Lacks says what records cannot do.
func (System) Lacks(f system.Feature) string {
	switch f {
	case system.Async:
		return "a commit is waited for"
	case system.Delays, system.Keys, system.Retries, system.Restarts:
		return "records alone have no " + string(f)
	}
	return ""
}

// Open makes a store.
func (System) Open(context.Context, system.Options) (system.Session, error) {
	dir, err := os.MkdirTemp("", "bench-pebble-")
	if err != nil {
		return nil, err
	}
	cache := pebble.NewCache(blockCache)
	defer cache.Unref()
	db, err := pebble.Open(dir, &pebble.Options{Cache: cache, MemTableSize: writeBuffer, MemTableStopWritesThreshold: 4,
		Logger: silent{}})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &session{dir: dir, db: db, waiting: newWaiting()}, nil
}

// silent keeps Pebble's notes about its own work to itself, but not its failures.
type silent struct{}

func (silent) Infof(string, ...any)              {}
func (silent) Errorf(format string, args ...any) { log.Printf(format, args...) }
func (silent) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

type session struct {
	dir     string
	db      *pebble.DB
	waiting *waiting
}

func (s *session) Publisher() system.Publisher { return &publisher{s} }

func (s *session) Usage() (system.Usage, error) {
	bytes, err := system.DirSize(s.dir)
	return system.Usage{Bytes: bytes}, err
}

func (s *session) Close() error { return errors.Join(s.db.Close(), os.RemoveAll(s.dir)) }

// Settled waits until every record is deleted.
func (s *session) Settled(ctx context.Context) error {
	for s.waiting.left() > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d records are left: %w", s.waiting.left(), ctx.Err())
		case <-time.After(200 * time.Microsecond):
		}
	}
	return nil
}

// Consume starts the readers, or as many as a scenario wants handlers.
func (s *session) Consume(_ context.Context, o system.ConsumeOptions, h system.Handler) (system.Consumer, error) {
	n, batch := readers, readBatch
	if o.Concurrency > 0 {
		n, batch = o.Concurrency, 1
	}
	c := &consumer{session: s, handle: h, batch: batch, errs: make([]error, n)}
	for i := range n {
		c.running.Go(func() { c.errs[i] = c.read() })
	}
	return c, nil
}

type consumer struct {
	session *session
	handle  system.Handler
	batch   int
	running sync.WaitGroup
	errs    []error
}

func (c *consumer) Stop(context.Context) error {
	c.session.waiting.stop()
	c.running.Wait()
	return errors.Join(c.errs...)
}

func key(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }
