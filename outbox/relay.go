package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
)

// Options of a Relay.
type Options struct {
	// Name is the table's in the broker. Relays of one table have the same, and one of them works at a time; each further
	// table that is relayed to the broker has another. Required.
	Name string
	// Dialect of the database. Required.
	Dialect Dialect
	// Batch is how many rows are read, published and removed together. At most 1000. Defaults to 500.
	Batch int
	// Every is how often an empty table is looked at. Defaults to 100 ms.
	Every time.Duration
	// Dedup has the broker know ids for this long, of messages that have no dedup id of their own: a row that is published
	// again, since all relays were down before it was removed, is then published once. It costs the broker memory.
	// Defaults to what it knows ids for anyway (Capabilities.IDWindow).
	Dedup time.Duration
}

const (
	maxBatch     = 1000 // of one step, on every broker
	batchBytes   = 16 << 20
	firstPause   = 100 * time.Millisecond // after a failure
	lastPause    = 5 * time.Second
	patience     = 5 * time.Second // for what has to be done after a stop
	duty         = "outbox."
	abreast      = 16 // keys of which several rows are published at the same time
	maxErrorText = 1000
)

// Relay publishes the rows of the table and removes them. It is safe for concurrent use.
type Relay struct {
	broker *ferry.Broker
	db     *sql.DB
	log    *slog.Logger
	o      Options
	steps  bool // several messages of a key can be published in one step

	acked   []int64          // published, and not removed yet; of the leader alone
	waiting map[string]*wait // topics that are full; of the leader alone

	leading             atomic.Bool
	relayed, duplicates atomic.Uint64
}

// New checks the options and returns a Relay. It starts nothing: Run does.
func New(b *ferry.Broker, db *sql.DB, o Options) (*Relay, error) {
	switch {
	case b == nil:
		return nil, driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)
	case db == nil:
		return nil, driver.NewError(ferry.ErrInvalid, "the database is nil", "open it first, with sql.Open", nil)
	case o.Batch < 0 || o.Batch > maxBatch:
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("a batch of %d rows is not possible", o.Batch),
			fmt.Sprintf("use 1 to %d, or zero for the default", maxBatch), nil)
	case o.Every < 0:
		return nil, driver.NewError(ferry.ErrInvalid, "Every is negative", "leave it zero for the default", nil)
	case o.Dedup < 0 || o.Dedup > driver.MaxDedup:
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("a dedup window of %v is out of range", o.Dedup),
			fmt.Sprintf("use up to %v, or zero for the default", driver.MaxDedup), nil)
	}
	if err := driver.CheckName("outbox", o.Name); err != nil {
		return nil, err
	}
	if most := driver.MaxNameLen - len(cluster.LeadBucket(duty)); len(o.Name) > most {
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the name of the outbox has %d bytes", len(o.Name)),
			fmt.Sprintf("use at most %d", most), nil)
	}
	if err := o.Dialect.check(); err != nil {
		return nil, err
	}
	if o.Batch == 0 {
		o.Batch = 500
	}
	if o.Every == 0 {
		o.Every = 100 * time.Millisecond
	}
	r := &Relay{broker: b, db: db, log: b.Logger().With("outbox", o.Name), o: o, waiting: map[string]*wait{}}
	switch b.Driver().Capabilities().AtomicPublish {
	case driver.AtomicEverywhere, driver.AtomicPerShard, driver.AtomicPerPartition:
		r.steps = true
	}
	return r, nil
}

// Run publishes rows until ctx ends, and then returns nil. Any number of processes may run it; one works at a time, and
// after a kill another does within cluster.DefaultTTL and a second. Neither a broker nor a database that is away for a
// time ends it.
func (r *Relay) Run(ctx context.Context) error {
	return cluster.Lead(ctx, r.broker, duty+r.o.Name, func(ctx context.Context, _ *cluster.Lock) error {
		r.leading.Store(true)
		defer r.leading.Store(false)
		r.work(ctx)
		return nil
	})
}

// work publishes rows while this process leads.
func (r *Relay) work(ctx context.Context) {
	defer r.removeAtEnd(ctx)
	clear(r.waiting)
	pause := firstPause
	for ctx.Err() == nil {
		n, err := r.round(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			if pause == firstPause {
				r.log.WarnContext(ctx, "rows cannot be relayed, and are tried again", "error", err)
			}
			sleep(ctx, pause)
			pause = min(2*pause, lastPause)
		case n == 0:
			sleep(ctx, r.o.Every)
			fallthrough
		default:
			pause = firstPause
		}
	}
}

// round relays one batch, and returns how many rows went through. An error concerns them all: the broker or the
// database is away.
func (r *Relay) round(ctx context.Context) (int, error) {
	if err := r.remove(ctx); err != nil { // before they are read again
		return 0, err
	}
	rows, err := r.read(ctx)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	r.publish(ctx, rows)
	return r.settle(ctx, rows)
}

// settle removes rows that are published, sets those aside that never will be, and leaves the others.
func (r *Relay) settle(ctx context.Context, rows []*row) (n int, err error) {
	full := map[string]error{}
	for _, row := range rows {
		switch {
		case row.err == nil:
			r.acked = append(r.acked, row.seq)
		case permanent(row.err):
			r.log.WarnContext(ctx, "a row cannot be published, and is set aside", "seq", row.seq, "id", row.msg.ID, "topic",
				row.msg.Topic, "error", row.err)
			if failed := r.setAside(ctx, row); failed != nil {
				err = failed
				continue
			}
			n++
		case isFull(row.err):
			full[row.msg.Topic] = row.err
		default:
			err = row.err
		}
	}
	n += len(r.acked)
	if removed := r.remove(ctx); removed != nil {
		err = removed
	}
	r.wait(ctx, rows, full)
	return n, err
}

// sleep waits until d is over or ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
