package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// With Options.Transactions, follow-ups are stored in one transaction with the outcome of their parent and the commit
// of its partition, and what leaves a tier of delays with the commit that says so. Each partition of a group, and of
// the tiers, has one transactional id: its next owner ends what the last one left open, and what a zombie still sends
// is refused.
const (
	TransactFor   = 10 * time.Second // brokers end a transaction that is open for longer
	TransactBatch = 500              // settlements in one transaction

	// TransactionsKey in the meta topic says that somebody uses transactions.
	TransactionsKey = "transactions"
)

// TransactionalID is that of a partition of which a group, by its name on the brokers, has the offsets.
func TransactionalID(group string, partition int32) string {
	return fmt.Sprintf("%s:%d", group, partition)
}

// Transactor is of one of our partitions.
func (d *Cluster) Transactor(group string, partition int32) *Transactor {
	return &Transactor{d: d, ID: TransactionalID(group, partition), group: group}
}

// Fence ends what is open under a transactional id, and refuses who used it until now.
func (d *Cluster) Fence(ctx context.Context, id string) error {
	for {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id,
			int32(TransactFor.Milliseconds()), -1, -1
		resp, err := req.RequestWith(ctx, d.Client)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if !errors.Is(err, kerr.ConcurrentTransactions) {
			return err
		}
		if err := Pause(ctx, FetchWait/5); err != nil {
			return err
		}
	}
}

// Transactor stores records in transactions, one after the other. That of a partition stores a commit with them, under
// an id that goes from one owner of the partition to the next.
type Transactor struct {
	d         *Cluster
	ID, group string // the transactional id, and whose offsets are committed

	mu     sync.Mutex
	cl     *kgo.Client // nil: made when it is needed
	closed bool        // the partition went to another owner
}

// client returns the client of the id. Only store calls it.
func (t *Transactor) client() (*kgo.Client, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrLost("the partition went to another consumer")
	}
	if t.cl == nil {
		cl, err := t.d.NewClient(append(t.d.producerOptions(), kgo.TransactionTimeout(TransactFor),
			kgo.TransactionalID(t.ID))...)
		if err != nil {
			return nil, err
		}
		t.cl = cl
	}
	return t.cl, nil
}

// forget ends the client; the next transaction makes another, which fences what this one leaves open.
func (t *Transactor) forget() {
	t.mu.Lock()
	cl := t.cl
	t.cl = nil
	t.mu.Unlock()
	if cl != nil {
		cl.Close()
	}
}

// Close ends the client for good.
func (t *Transactor) Close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.forget()
}

// filling fills in what a transaction commits.
type filling func(*kmsg.TxnOffsetCommitRequest) error

// Store runs one transaction with records, and a commit unless that is nil. After an error nothing of it is stored,
// unless doubt says that its end was sent and not answered: once the id is fenced what is committed tells.
func (t *Transactor) Store(ctx context.Context, rs []*kgo.Record, commit filling) (doubt bool, err error) {
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
func (t *Transactor) stage(ctx context.Context, cl *kgo.Client, rs []*kgo.Record, commit filling) error {
	err := Unsure("a record of the transaction", cl.ProduceSync(ctx, rs...).FirstErr())
	if err != nil || commit == nil {
		return err
	}
	id, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return err
	}
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = t.ID, id, epoch, t.group
	added, err := add.RequestWith(ctx, cl)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = t.ID, id, epoch, t.group
	if err := commit(req); err != nil {
		return err
	}
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
