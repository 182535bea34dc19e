package kafka

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// atomicBatches stores batches all or not at all: each in a transaction of its own, one after the other.
type atomicBatches struct {
	id   string
	turn chan struct{} // holds something while nobody has it
	cl   *kgo.Client   // of who has the turn; nil: made when it is needed
}

func newAtomicBatches(id string) *atomicBatches {
	w := &atomicBatches{id: id, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w
}

// publishWhole stores all messages or none.
func (d *Driver) publishWhole(ctx context.Context, msgs []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	rs := make([]driver.Receipt, len(msgs))
	if err := d.refusal(ctx, o); err != nil {
		return rs, refusal.All(rs, err)
	}
	c, rs, err := d.prepareAll(ctx, msgs)
	if err == nil {
		err = refusal.Of(rs)
	}
	if err != nil {
		c.resolve(d.known, false)
		return rs, refusal.All(rs, err)
	}
	if err = d.storeWhole(ctx, c); err != nil {
		return rs, refusal.All(rs, err)
	}
	c.receipts(rs, make([]error, len(c.posts)))
	return rs, nil
}

// prepareAll turns messages into records. While somebody else publishes an id of theirs it claims none, and begins again after that.
func (d *Driver) prepareAll(ctx context.Context, msgs []*driver.Message) (*call, []driver.Receipt, error) {
	for {
		c, rs := newCall(len(msgs)), make([]driver.Receipt, len(msgs))
		_, wait := d.prepareFrom(ctx, c, msgs, rs, 0)
		if wait == nil {
			return c, rs, nil
		}
		c.resolve(d.known, false)
		if err := d.await(ctx, wait); err != nil {
			return newCall(0), rs, err
		}
	}
}

// prepareOne is prepareAll for a message that must be taken.
func (d *Driver) prepareOne(ctx context.Context, m *driver.Message) (*call, error) {
	c, rs, err := d.prepareAll(ctx, []*driver.Message{m})
	return c, errors.Join(err, refusal.Of(rs))
}

// storeWhole runs the transaction of a call. It goes on when ctx ends.
func (d *Driver) storeWhole(ctx context.Context, c *call) error {
	if len(c.posts) == 0 {
		return nil
	}
	return d.storeTogether(ctx, 2*transactFor, c.records(), func(err error) {
		c.resolve(d.known, err == nil) // also when nobody knows: stored twice is better than never
	})
}

// records are those of all messages.
func (c *call) records() []*kgo.Record {
	rs := make([]*kgo.Record, len(c.posts))
	for n := range c.posts {
		rs[n] = c.posts[n].record
	}
	return rs
}

// task runs something that Close waits for. It reports false when the driver is closed.
func (d *Driver) task(do func()) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.tasks.Go(do)
	return true
}

// store runs one transaction. An error other than ErrUnknown says that nothing of it is stored.
func (w *atomicBatches) store(ctx context.Context, d *Driver, records []*kgo.Record) error {
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	case <-ctx.Done():
		return notWhole(ctx.Err())
	}
	if w.cl == nil {
		var err error
		if w.cl, err = kgo.NewClient(d.clientOptions(append(d.producerOptions(), kgo.TransactionTimeout(transactFor), kgo.TransactionalID(w.id))...)...); err != nil {
			return driver.NewError(driver.ErrInvalid, "the options of the client are wrong", "see Options", err)
		}
	}
	err := w.cl.BeginTransaction()
	if err == nil {
		err = w.cl.ProduceSync(ctx, records...).FirstErr()
	}
	if err != nil {
		w.abort(ctx)
		return notWhole(err)
	}
	if err = w.cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
		w.close()
		return w.findOut(ctx, d, records, err)
	}
	return nil
}

// abort ends a transaction of which nothing is to stay. What it leaves open is fenced by the next one.
func (w *atomicBatches) abort(ctx context.Context) {
	err := w.cl.AbortBufferedRecords(ctx)
	if err == nil {
		err = w.cl.EndTransaction(ctx, kgo.TryAbort)
	}
	if err != nil {
		w.close()
	}
}

func (w *atomicBatches) close() {
	if w.cl != nil {
		w.cl.Close()
		w.cl = nil
	}
}

// findOut learns what became of a transaction whose end was not answered: first it is ended for good, then its records are there or not.
func (w *atomicBatches) findOut(ctx context.Context, d *Driver, records []*kgo.Record, cause error) error {
	err := d.fence(ctx, w.id)
	if err == nil {
		r := records[0]
		var found *kgo.Record
		if found, err = d.readOne(ctx, r.Topic, r.Partition, r.Offset); found != nil {
			return nil
		}
		var trimmed bool
		if err == nil {
			trimmed, err = d.trimmed(ctx, r)
		}
		if err == nil && !trimmed {
			return notWhole(cause)
		}
	}
	return driver.NewError(driver.ErrUnknown, "the messages may or may not be stored, all of them", "check, or repeat it with the same ids", errors.Join(cause, err))
}

// trimmed reports whether what was stored at the offset of a record is deleted.
func (d *Driver) trimmed(ctx context.Context, r *kgo.Record) (bool, error) {
	starts, err := d.admin.ListStartOffsets(ctx, r.Topic)
	if err != nil {
		return false, err
	}
	start, ok := starts.Lookup(r.Topic, r.Partition)
	return !ok || start.Offset > r.Offset, nil
}

func notWhole(err error) error {
	if known := unsure("the batch", err); !errors.Is(known, driver.ErrUnknown) {
		return known
	}
	return driver.NewError(driver.ErrNotApplied, "the messages could not be stored in one transaction", "try again: nothing of it is stored", err)
}
