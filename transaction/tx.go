package transaction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// Options of a transaction.
type Options struct {
	// Kind says which Check is asked whether to commit, if the producer vanishes. Without one the transaction is rolled
	// back after its TTL.
	Kind string
	// Subject is what the Check is told: the number of an order for example. At most 1 KiB.
	Subject string
	// TTL is how long after its last half a transaction that nobody decides is rolled back. One second to seven days.
	// Defaults to an hour.
	TTL time.Duration
}

// Tx is a transaction of this process. It is used by one goroutine at a time.
type Tx struct {
	store
	t      Transaction
	refs   []driver.Ref // of the halves, where the broker told
	broken error        // of a Publish: some halves may not be there
}

// Begin returns a new transaction. Nothing is written before its first half.
func Begin(b *ferry.Broker, o Options) (*Tx, error) {
	if b == nil {
		return nil, driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)
	}
	if o.TTL == 0 {
		o.TTL = defaultTTL
	}
	switch {
	case o.TTL < minTTL || o.TTL > maxTTL:
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("a TTL of %v is out of range", o.TTL),
			fmt.Sprintf("use %v to %v, or zero for %v", minTTL, maxTTL, defaultTTL), nil)
	case len(o.Subject) > MaxSubject || !utf8.ValidString(o.Subject) || strings.ContainsFunc(o.Subject, unicode.IsControl):
		return nil, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("a subject of %d bytes is not possible", len(o.Subject)),
			fmt.Sprintf("use printable text of at most %d bytes", MaxSubject), nil)
	}
	if o.Kind != "" {
		if err := driver.CheckName("kind", o.Kind); err != nil {
			return nil, err
		}
	}
	return &Tx{store: newStore(b), t: Transaction{ID: uuid7.New(time.Now()), Kind: o.Kind, Subject: o.Subject,
		State: Open, TTL: o.TTL}}, nil
}

// ID names the transaction, in the CLI for example.
func (tx *Tx) ID() string { return tx.t.ID }

// Publish stores messages as halves, which nobody sees before Commit. Each has the id that its receipt tells; neither
// an id nor a dedup or unique id of its own, which the broker would know also after a rollback. A delay counts from the
// commit, a TTL from now: it must be longer than that of the transaction. At is refused, since a broker cannot hold a
// message until a time.
//
// After an error the transaction can only be rolled back: some of the halves may be stored, and others not.
func (tx *Tx) Publish(ctx context.Context, ms ...*ferry.Message) ([]ferry.Receipt, error) {
	if err := tx.usable(); err != nil {
		return nil, err
	}
	if tx.broken != nil {
		return nil, tx.brokenError()
	}
	if len(ms) == 0 {
		return nil, nil
	}
	halves, err := tx.halves(ms)
	if err != nil {
		return nil, err
	}
	receipts, err := tx.publish(ctx, halves)
	tx.broken = err
	return receipts, err
}

// usable says why nothing can be done any more.
func (tx *Tx) usable() error {
	if tx.t.State != Open {
		return driver.NewError(ferry.ErrConflict, fmt.Sprintf("transaction %s is %s", tx.t.ID, tx.t.State.words()),
			"begin another one", nil)
	}
	return nil
}

func (tx *Tx) brokenError() error {
	return driver.NewError(ferry.ErrConflict, fmt.Sprintf("a half of transaction %s could not be published", tx.t.ID),
		"roll it back, and begin another one", tx.broken)
}

// halves returns messages as they are held, and notes them in the transaction.
func (tx *Tx) halves(ms []*ferry.Message) ([]*ferry.Message, error) {
	if n := len(tx.t.Halves) + len(ms); n > MaxHalves {
		return nil, driver.NewError(ferry.ErrTooLarge, fmt.Sprintf("a transaction of %d halves is too large", n),
			fmt.Sprintf("use at most %d", MaxHalves), nil)
	}
	held := make([]*ferry.Message, len(ms))
	for i, m := range ms {
		if err := tx.check(m); err != nil {
			return nil, fmt.Errorf("message %d of %d: %w", i+1, len(ms), err)
		}
	}
	for i, m := range ms {
		h := *m
		h.ID, h.OwnID, h.Delay = halfID(tx.t.ID, len(tx.t.Halves)), true, driver.Hold
		held[i] = &h
		tx.t.Halves = append(tx.t.Halves, Half{Topic: m.Topic, ID: h.ID, Delay: max(0, m.Delay)})
	}
	tx.t.Count = len(tx.t.Halves)
	return held, nil
}

// check says why a message cannot be a half, or nil.
func (tx *Tx) check(m *ferry.Message) error {
	invalid := func(text, hint string) error { return driver.NewError(ferry.ErrInvalid, text, hint, nil) }
	switch {
	case m == nil:
		return invalid("the message is nil", "publish messages only")
	case m.ID != "" || m.DedupID != "" || m.Unique != nil:
		return invalid("a half has an id, a dedup id or a unique id of its own",
			"leave it out: the broker would know it after a rollback, too")
	case !m.At.IsZero() || m.Delay == driver.Hold:
		return invalid("a half is to be due at a time", "give it a delay, which counts from the commit")
	case m.TTL > 0 && m.TTL <= tx.t.TTL:
		return invalid(fmt.Sprintf("a half with a TTL of %v could be gone before the transaction is decided", m.TTL),
			fmt.Sprintf("make it longer than the TTL of the transaction, which is %v", tx.t.TTL))
	}
	if err := driver.CheckTopic(m.Topic); err != nil {
		return err
	}
	return m.Validate(tx.broker.Driver().Capabilities().MaxBody)
}

// publish stores halves. That there may be some is written before: nobody could find one of a producer that is killed.
func (tx *Tx) publish(ctx context.Context, halves []*ferry.Message) ([]ferry.Receipt, error) {
	w := driver.Write{Name: openPrefix + tx.t.ID, Data: tx.t.encode(), If: driver.Absent}
	if tx.t.revision != 0 {
		w.If = driver.Condition(tx.t.revision)
	}
	v, err := tx.apply(ctx, tx.t.ID, w)
	if errors.Is(err, driver.ErrConflict) {
		return nil, driver.NewError(ferry.ErrConflict, fmt.Sprintf("transaction %s was decided meanwhile", tx.t.ID),
			"was its TTL over? roll it back, and begin another one", err)
	}
	if err != nil {
		return nil, err
	}
	tx.t.revision = v.Revision
	var receipts []ferry.Receipt
	err = repeated(ctx, func() (err error) {
		receipts, err = tx.broker.PublishBatch(ctx, halves)
		return err
	})
	for _, r := range receipts {
		tx.refs = append(tx.refs, r.Ref)
		if r.Spooled && err == nil {
			err = driver.NewError(ferry.ErrNotApplied, fmt.Sprintf("half %s is in a spool, where nobody can commit it", r.ID),
				"roll back, and begin another transaction when the broker is back", nil)
		}
	}
	return receipts, err
}

// Commit has all halves published. It returns nil once that is decided, which one write does; if the halves cannot be
// moved now, a Resolver does it. Committing again changes nothing.
//
// ErrConflict says that it was rolled back meanwhile, since its TTL was over for example. After ErrUnknown try again:
// it is not known whether it is committed.
func (tx *Tx) Commit(ctx context.Context) error { return tx.end(ctx, Committed) }

// Rollback has all halves deleted. It returns nil once that is decided. Rolling back again changes nothing, so that it
// may be deferred; after Commit it is ErrConflict, and changes nothing either.
func (tx *Tx) Rollback(ctx context.Context) error { return tx.end(ctx, RolledBack) }

func (tx *Tx) end(ctx context.Context, to State) error {
	switch {
	case tx.t.State == to:
		return nil
	case tx.t.State != Open:
		return tx.t.conflict(to)
	case to == Committed && tx.broken != nil:
		return tx.brokenError()
	case len(tx.t.Halves) == 0, tx.t.revision == 0 && tx.broken != nil && !errors.Is(tx.broken, driver.ErrUnknown):
		// nothing was written
		tx.t.State = to
		return nil
	}
	decided, err := tx.decide(ctx, tx.t, to, ByProducer)
	if decided != nil {
		tx.t.State, tx.t.By = decided.State, decided.By
	}
	if err != nil {
		tx.discard(ctx, decided)
		return err
	}
	if !decided.Done {
		tx.finish(ctx, decided, tx.refs)
	}
	return nil
}

// discard deletes the halves of a transaction that another has rolled back: one that was stored late is known to its
// producer alone.
func (tx *Tx) discard(ctx context.Context, decided *Transaction) {
	if decided != nil && decided.State == RolledBack {
		halves := *decided
		halves.Halves = tx.t.Halves
		_ = tx.settle(ctx, &halves, tx.refs) // whoever rolled it back does it too
	}
}
