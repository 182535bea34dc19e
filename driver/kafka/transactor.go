package kafka

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// transactor stores records and a commit of a partition in transactions, one after the other, under an id that goes from
// one owner of the partition to the next.
type transactor struct {
	d         *Driver
	id, group string // the transactional id, and whose offsets are committed

	mu     sync.Mutex
	cl     *kgo.Client // nil: made when it is needed
	closed bool        // the partition went to another owner
}

// client returns the client of the id. Only store calls it.
func (t *transactor) client() (*kgo.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errLost("the partition went to another consumer")
	}
	if t.cl == nil {
		opts := append(t.d.producerOptions(), kgo.TransactionTimeout(transactFor), kgo.TransactionalID(t.id))
		var err error
		if t.cl, err = kgo.NewClient(t.d.clientOptions(opts...)...); err != nil {
			return nil, driver.NewError(driver.ErrInvalid, "the options of the client are wrong", "see Options", err)
		}
	}
	return t.cl, nil
}

// forget ends the client; the next transaction makes another, which fences what this one leaves open.
func (t *transactor) forget() {
	t.mu.Lock()
	cl := t.cl
	t.cl = nil
	t.mu.Unlock()
	if cl != nil {
		cl.Close()
	}
}

// close ends the client for good.
func (t *transactor) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.forget()
}

// filling fills in what a transaction commits.
type filling func(*kmsg.TxnOffsetCommitRequest) error

// store runs one transaction with records and a commit. After an error nothing of it is stored, unless doubt says that
// its end was sent and not answered: once the id is fenced what is committed tells.
func (t *transactor) store(ctx context.Context, rs []*kgo.Record, commit filling) (doubt bool, err error) {
	cl, err := t.client()
	if err != nil {
		return false, err
	}
	if _, _, err = cl.ProducerID(ctx); err == nil { // which BeginTransaction would wait for as long as brokers are away
		err = cl.BeginTransaction()
	}
	if err != nil {
		t.forget()
		return false, err
	}
	if err = t.stage(ctx, cl, rs, commit); err == nil {
		if err = cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.forget()
		}
		return err != nil, err
	}
	aborted := cl.AbortBufferedRecords(ctx)
	if aborted == nil {
		aborted = cl.EndTransaction(ctx, kgo.TryAbort)
	}
	if aborted != nil {
		t.forget()
	}
	return false, err
}

// stage sends everything of a transaction but its end.
func (t *transactor) stage(ctx context.Context, cl *kgo.Client, rs []*kgo.Record, commit filling) error {
	for _, r := range cl.ProduceSync(ctx, rs...) {
		if r.Err != nil {
			return unsure("a record of the transaction", r.Err)
		}
	}
	id, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = t.id, id, epoch, t.group
	added, err := add.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.id, id, epoch, t.group
	if err := commit(req); err != nil {
		return err
	}
	return sendTxnCommit(ctx, cl, req)
}

func sendTxnCommit(ctx context.Context, cl *kgo.Client, req *kmsg.TxnOffsetCommitRequest) error {
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	for _, topic := range resp.Topics {
		for _, p := range topic.Partitions {
			err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
		}
	}
	return err
}
