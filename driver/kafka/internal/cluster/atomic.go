package cluster

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
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

// store runs one transaction. An error other than ErrUnknown says that nothing of it is stored.
func (w *atomicBatches) store(ctx context.Context, d *Cluster, records []*kgo.Record) error {
	select {
	case <-w.turn:
		defer func() { w.turn <- struct{}{} }()
	case <-ctx.Done():
		return notWhole(ctx.Err())
	}
	if w.cl == nil {
		var err error
		if w.cl, err = kgo.NewClient(d.ClientOptions(append(d.producerOptions(), kgo.TransactionTimeout(TransactFor),
			kgo.TransactionalID(w.id))...)...); err != nil {
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
		w.Close()
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
		w.Close()
	}
}

// Close ends the client.
func (w *atomicBatches) Close() {
	if w.cl != nil {
		w.cl.Close()
		w.cl = nil
	}
}

// findOut learns what became of a transaction whose end was not answered: first it is ended for good, then its records
// are there or not.
func (w *atomicBatches) findOut(ctx context.Context, d *Cluster, records []*kgo.Record, cause error) error {
	err := d.Fence(ctx, w.id)
	if err == nil {
		r := records[0]
		var found *kgo.Record
		if found, err = d.ReadOne(ctx, r.Topic, r.Partition, r.Offset); found != nil {
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
	return driver.NewError(driver.ErrUnknown, "the messages may or may not be stored, all of them",
		"check, or repeat it with the same ids", errors.Join(cause, err))
}

// trimmed reports whether what was stored at the offset of a record is deleted.
func (d *Cluster) trimmed(ctx context.Context, r *kgo.Record) (bool, error) {
	starts, err := d.Admin.ListStartOffsets(ctx, r.Topic)
	if err != nil {
		return false, err
	}
	start, ok := starts.Lookup(r.Topic, r.Partition)
	return !ok || start.Offset > r.Offset, nil
}

func notWhole(err error) error {
	if known := Unsure("the batch", err); !errors.Is(known, driver.ErrUnknown) {
		return known
	}
	return driver.NewError(driver.ErrNotApplied, "the messages could not be stored in one transaction",
		"try again: nothing of it is stored", err)
}
