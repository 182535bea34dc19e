package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kv"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Options of an Engine. Capabilities and MaxMessages are required.
type Options struct {
	// Capabilities are what the driver above promises.
	Capabilities driver.Capabilities
	// MaxMessages bounds what is held in all topics together, dead letters and kept messages included.
	MaxMessages int64
	// MaxIDs bounds, for each topic, the producers' own ids that are remembered after their messages are gone. Defaults
	// to a million.
	MaxIDs int
	// MaxDedup bounds the dedup ids that each topic remembers; beyond it publishing with one answers ErrFull. Defaults to
	// ten million.
	MaxDedup int
	// Store keeps what must survive the process. Nil: nothing does.
	Store Store
	// SnapshotFrom is how many messages a topic has that is described at the end, so that opening need not read them.
	// Defaults to 10,000.
	SnapshotFrom int
	// SweepEvery is how many messages are removed one by one before what lies before the first is removed in one piece.
	// Defaults to 50,000.
	SweepEvery int
	// Window is how many ready messages of a topic are in memory before others stay in the store only. Zero: all are.
	Window int
	// CacheBytes is how much content of messages that are in the store may be in memory too.
	CacheBytes int64
}

// Engine is a broker in memory. It implements driver.Driver.
type Engine struct {
	o      Options
	base   time.Time
	stop   <-chan struct{} // closed when the store failed; nil without one
	nonce  uint64
	seed   maphash.Seed  // of the tables
	claims atomic.Uint64 // counts, for the tokens
	stored atomic.Int64  // messages in all topics
	cached atomic.Int64  // bytes of content that is in the store too
	spent  spentPrompts

	contentType atomic.Pointer[string] // of the newest message: most have the same

	kv     *kv.Local
	topics sync.Map // name -> *topic
	mu     sync.Mutex
	closed bool           // guarded by mu; no topic is made after that
	number uint32         // guarded by mu; the highest number of a topic, in the store
	timers sync.WaitGroup // those armed, and their callbacks
}

// New returns an empty Engine.
func New(o Options) *Engine {
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	o.MaxIDs, o.MaxDedup = cmp.Or(o.MaxIDs, 1_000_000), cmp.Or(o.MaxDedup, 10_000_000)
	o.SnapshotFrom, o.SweepEvery = cmp.Or(o.SnapshotFrom, 10_000), cmp.Or(o.SweepEvery, 50_000)
	e := &Engine{o: o, base: time.Now(), nonce: binary.LittleEndian.Uint64(nonce[:]), seed: maphash.MakeSeed()}
	if o.Store != nil {
		e.stop = o.Store.Stopped()
	}
	e.kv = e.newKV()
	return e
}

// Close releases what subscriptions hold, ends waiting calls with ErrClosed, and stops all timers.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for t := range e.living() {
		now := e.now()
		for _, g := range t.groups {
			for _, s := range slices.Clone(g.members) {
				s.leave(now)
			}
		}
		t.flush(now)
		t.end()
	}
	e.kv.Close()
	e.timers.Wait()
	if e.o.Store == nil {
		return nil
	}
	if err := e.o.Store.Append(nil, true).Wait(ctx, true); err != nil || e.o.Store.Room() != nil {
		return err
	}
	_ = e.snapshot(ctx) // everything is safe; without it opening takes longer
	return e.o.Store.Failure()
}

// allTopics returns the topics in order of their names.
func (e *Engine) allTopics() []*topic {
	var ts []*topic
	e.topics.Range(func(_, v any) bool { ts = append(ts, v.(*topic)); return true })
	slices.SortFunc(ts, func(a, b *topic) int { return strings.Compare(a.name, b.name) })
	return ts
}

// living are the topics that have not ended, each locked for its turn.
func (e *Engine) living() iter.Seq[*topic] {
	return func(yield func(*topic) bool) {
		for _, t := range e.allTopics() {
			t.mu.Lock()
			goOn := t.ended || yield(t)
			t.mu.Unlock()
			if !goOn {
				return
			}
		}
	}
}

// lock returns the topic, locked and brought up to date. It is made if it does not exist.
func (e *Engine) lock(name string, now moment) (*topic, error) {
	return e.acquire(name, true, nil, now)
}

// lockExisting is like lock, but ErrNotFound when the topic does not exist.
func (e *Engine) lockExisting(name string, now moment) (*topic, error) {
	return e.acquire(name, false, nil, now)
}

// acquire is lock or lockExisting, for a step that has a batch already or, if that is nil, gets one of its own.
func (e *Engine) acquire(name string, create bool, shared Batch, now moment) (*topic, error) {
	err := e.stopped()
	for err == nil {
		v, ok := e.topics.Load(name)
		if ok {
			t := v.(*topic)
			t.mu.Lock()
			if !t.ended {
				if shared != nil {
					t.journal.batch = shared
				}
				t.advance(now)
				return t, nil
			}
			t.mu.Unlock()
		}
		switch {
		case e.isClosed():
			err = refusal.Closed()
		case create:
			err = e.makeTopic(name)
		default:
			err = e.noTopic(name)
		}
	}
	return nil, err
}

// lockAll locks several topics in the order of their names, so that a step over all of them is one.
func (e *Engine) lockAll(names []string, now moment) (map[string]*topic, error) {
	var shared Batch
	if e.o.Store != nil {
		shared = e.o.Store.Batch()
	}
	slices.Sort(names)
	names = slices.Compact(names)
	ts := make(map[string]*topic, len(names))
	for _, name := range names {
		t, err := e.acquire(name, true, shared, now)
		if err != nil {
			e.unlockAll(ts, now)
			return nil, err
		}
		ts[name] = t
	}
	return ts, nil
}

// unlockAll stores a step over several topics in one batch, and unlocks them.
func (e *Engine) unlockAll(ts map[string]*topic, now moment) (last Round) {
	if e.o.Store != nil {
		last = e.flushAll(ts, now)
	}
	for _, t := range ts {
		t.unlock(now)
	}
	return last
}

func (e *Engine) makeTopic(name string) error {
	if err := driver.CheckName("topic", name); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return refusal.Closed()
	}
	if _, ok := e.topics.Load(name); ok {
		return nil
	}
	t := newTopic(e, name)
	if t.journal != nil {
		e.number++
		t.journal.number = e.number
	}
	e.topics.Store(name, t)
	return nil
}

func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// stopped says why nothing is possible any more, or nil.
func (e *Engine) stopped() error {
	if e.o.Store == nil {
		return nil
	}
	err := e.o.Store.Failure()
	if err == nil {
		return nil
	}
	return driver.NewError(driver.ErrClosed, "the store stopped after a failed write, and takes nothing more",
		"see to the disk, then close the broker and open it again: that reads what was really stored", err)
}

// durable waits until a round survives a power loss, unless the step failed anyway.
func (e *Engine) durable(ctx context.Context, r Round, err *error) {
	if *err == nil {
		*err = e.outcome(ctx, r, true)
	}
}

// outcome waits for a round, if there is one, and says what is not known when it did not end well.
func (e *Engine) outcome(ctx context.Context, r Round, synced bool) error {
	if r == nil {
		return nil
	}
	err := r.Wait(ctx, synced)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrClosed): // it came too late to be written
		return err
	case ctx.Err() != nil && e.o.Store.Failure() == nil:
		return driver.NewError(driver.ErrUnknown, "the context ended before the disk had confirmed the write",
			"it is likely stored: check, or repeat it with the same id", err)
	}
	return driver.NewError(driver.ErrUnknown, "the write failed, and may or may not have reached the disk",
		"see to the disk, then close the broker and open it again", err)
}

func (e *Engine) noTopic(name string) error {
	var names []string
	for _, t := range e.allTopics() {
		if !driver.Reserved(t.name) {
			names = append(names, t.name)
		}
	}
	return driver.NoTopic(name, names)
}
