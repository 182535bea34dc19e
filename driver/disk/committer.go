package disk

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/internal/engine"
)

// committer writes the steps of concurrent callers together. Two goroutines share the work, so that what need not be
// synced never waits for a sync: the writer hands rounds to the operating system one after the other, and the syncer
// forces to the disk whatever was written when it begins.
type committer struct {
	write func([]*batch) error // hands batches to the operating system, in order
	sync  func() error         // forces what was written to the disk
	every time.Duration        // between syncs that nobody waits for

	failure *failure

	mu        sync.Mutex
	open      *round   // collects batches
	unsynced  []*round // written, and somebody waits for their sync
	written   uint64   // the newest round that is
	syncing   bool
	returning int // steps that the last sync was waited for by
	closed    bool

	durable atomic.Uint64 // the newest round that is synced

	wake  chan struct{} // for the writer: there is an open round
	force chan struct{} // for the syncer: somebody waits
	dirty chan struct{} // for the syncer: there is something to sync when it is time
	quit  chan struct{}
	wait  sync.WaitGroup
}

// round is some batches that are written together.
type round struct {
	c       *committer
	batches []*batch
	synced  bool // somebody waits for its sync; fixed once the writer has taken it
	prompt  bool // somebody waits for its write only
	taken   bool
	steps   int    // how many batches it had
	number  uint64 // in the order of writing; set before written is closed

	written chan struct{}
	err     error // of writing; set before written is closed
	done    chan struct{}
	doneErr error // of syncing
}

var _ engine.Round = (*round)(nil)

func newCommitter(write func([]*batch) error, sync func() error, every time.Duration, f *failure) *committer {
	c := &committer{write: write, sync: sync, every: every, failure: f, quit: make(chan struct{}),
		wake: make(chan struct{}, 1), force: make(chan struct{}, 1), dirty: make(chan struct{}, 1)}
	c.wait.Go(c.writer)
	c.wait.Go(c.syncer)
	return c
}

// append adds a batch, which may be nil, to the open round.
func (c *committer) append(b *batch, synced bool) *round {
	c.mu.Lock()
	if c.failure.get() != nil || c.closed {
		defer c.mu.Unlock()
		return c.refused(b)
	}
	r := c.open
	if r == nil {
		r = c.newRound()
		c.open = r
	}
	if b != nil {
		r.batches = append(r.batches, b)
	}
	r.synced, r.prompt = r.synced || synced, r.prompt || !synced
	patient := c.patient(r)
	c.mu.Unlock()
	if !patient {
		signal(c.wake)
	}
	return r
}

// refused returns a round that is over. Closing has synced all that came before, so without a batch that is no error.
func (c *committer) refused(b *batch) *round {
	r := c.newRound()
	r.taken, r.synced, r.err = true, true, c.failure.get()
	if r.err == nil && b != nil {
		r.err = errClosed()
	}
	r.finish()
	return r
}

// patient reports whether a round gains nothing from being written now: all who wait for it wait for a sync, and
// the one under way began without it. So it collects more, and is written when that sync is over, or when as many
// steps are in it as the sync before had: those who waited for that one have come back, and others wait for this one.
func (c *committer) patient(r *round) bool {
	return c.syncing && r.synced && !r.prompt && c.failure.get() == nil && len(r.batches) < c.returning
}

func (c *committer) newRound() *round {
	return &round{c: c, written: make(chan struct{}), done: make(chan struct{})}
}

// finish ends the waits for a round that was not written.
func (r *round) finish() {
	r.doneErr = r.err
	close(r.written)
	close(r.done)
}

// signal wakes a goroutine; one that is awake looks again.
func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (c *committer) writer() {
	defer c.writeOpen() // the last one; also what came in while a fatal error ended this goroutine
	for {
		select {
		case <-c.wake:
			c.writeOpen()
		case <-c.quit:
			return
		}
	}
}

// writeOpen writes the open round, if there is one.
func (c *committer) writeOpen() {
	c.mu.Lock()
	r := c.open
	if r == nil || c.patient(r) {
		c.mu.Unlock()
		return
	}
	c.open, r.taken, r.err = nil, true, c.failure.get()
	c.mu.Unlock()
	returned := false
	defer func() {
		if !returned {
			r.err = c.failure.get()
			r.finish()
		}
	}()
	if r.err == nil && len(r.batches) > 0 {
		r.err = c.write(r.batches) // does not return after what Pebble calls fatal
	}
	returned = true
	c.wrote(r)
}

// wrote ends the waits for a write, and passes the round on.
func (c *committer) wrote(r *round) {
	r.steps = len(r.batches)
	r.batches = nil
	if r.err != nil {
		c.failure.set(r.err)
		r.finish()
		return
	}
	c.mu.Lock()
	c.written++
	r.number = c.written
	if r.synced {
		c.unsynced = append(c.unsynced, r)
	}
	c.mu.Unlock()
	close(r.written)
	if r.synced {
		signal(c.force)
	} else {
		signal(c.dirty)
	}
}

func (c *committer) syncer() {
	var due <-chan time.Time
	for {
		select {
		case <-c.force:
		case <-c.dirty:
			if due == nil {
				due = time.After(c.every)
			}
			continue
		case <-due:
		case <-c.quit:
			return
		}
		due = nil
		c.syncWritten()
	}
}

// syncWritten syncs everything that was written, and ends the waits for it.
func (c *committer) syncWritten() {
	c.mu.Lock()
	rounds, err, written := c.unsynced, c.failure.get(), c.written
	c.unsynced, c.syncing = nil, true
	c.mu.Unlock()
	if err == nil {
		if err = c.sync(); err != nil {
			c.failure.set(err)
		} else {
			c.durable.Store(written)
		}
	}
	c.mu.Lock()
	c.syncing = false
	c.returning = 0
	for _, r := range rounds {
		c.returning += r.steps
	}
	c.mu.Unlock()
	signal(c.wake)
	for _, r := range rounds {
		r.doneErr = err
		close(r.done)
	}
}

// close writes and syncs what is left, and ends the goroutines.
func (c *committer) close() error {
	close(c.quit)
	c.wait.Wait()
	for !c.shut() {
		c.writeOpen()
		c.syncWritten()
	}
	return c.failure.get()
}

// shut lets nothing in any more, if everything is synced or cannot be.
func (c *committer) shut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = c.open == nil && len(c.unsynced) == 0 && (c.failure.get() != nil || c.durable.Load() == c.written)
	return c.closed
}

// Wait returns when the round was written and, with synced, synced.
func (r *round) Wait(ctx context.Context, synced bool) error {
	ended, err := r.written, &r.err
	if synced && !r.Synced() {
		if !r.ask() {
			return r.c.append(nil, true).Wait(ctx, true) // a later round: what is safe in it is safe in this one
		}
		ended, err = r.done, &r.doneErr
	}
	select {
	case <-ended:
		return *err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask reports whether this round will be synced, and asks for it if it is not too late.
func (r *round) ask() bool {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	if !r.taken {
		r.synced = true
	}
	return r.synced
}

// Synced reports whether the round was synced, for itself or with a later one.
func (r *round) Synced() bool { return r.Readable() && r.number <= r.c.durable.Load() }

// Readable reports whether the round was written.
func (r *round) Readable() bool {
	select {
	case <-r.written:
		return r.err == nil
	default:
		return false
	}
}
