package transaction

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Query asks for a page of the transactions that are not done.
type Query struct {
	// Cursor is where to go on: Page.Next. Empty: from the begin.
	Cursor string
	// Limit is how many at most. Defaults to 100.
	Limit int
}

// Page is some of the transactions that are not done, in no order.
type Page struct {
	Transactions []Transaction
	Next         string // empty at the end
}

// List returns a page of the transactions that are open, or decided and not done.
func List(ctx context.Context, b *ferry.Broker, q Query) (Page, error) {
	if b == nil {
		return Page{}, driver.NewError(ferry.ErrInvalid, "the broker is nil",
			"open one first, with open.URL for example", nil)
	}
	return newStore(b).list(ctx, q)
}

// list reads a page of one bucket. A cursor is the number of the bucket, and where to go on in it.
func (s store) list(ctx context.Context, q Query) (Page, error) {
	number, after, _ := strings.Cut(q.Cursor, "/")
	at := 0
	if q.Cursor != "" {
		var err error
		if at, err = strconv.Atoi(number); err != nil || at < 0 || at >= buckets {
			return Page{}, driver.NewError(ferry.ErrInvalid, fmt.Sprintf("there is no page at %.40q", q.Cursor),
				"use Page.Next of an earlier page", nil)
		}
	}
	kp, err := s.kv.List(ctx, driver.KVQuery{Bucket: bucket(at), Prefix: openPrefix, After: after, Limit: q.Limit})
	if err != nil {
		return Page{}, err
	}
	var p Page
	for _, v := range kp.Values {
		t, err := decode(strings.TrimPrefix(v.Name, openPrefix), v, false)
		if err != nil {
			s.log.WarnContext(ctx, "a transaction is left to newer versions", "error", err)
			continue
		}
		p.Transactions = append(p.Transactions, *t)
	}
	switch {
	case kp.Next != "":
		p.Next = fmt.Sprintf("%d/%s", at, kp.Next)
	case at+1 < buckets:
		p.Next = fmt.Sprintf("%d/", at+1)
	}
	return p, nil
}

// Get returns a transaction that is not done, or was done within ten minutes. ErrNotFound otherwise.
func Get(ctx context.Context, b *ferry.Broker, id string) (Transaction, error) {
	s, err := storeFor(b, id)
	if err != nil {
		return Transaction{}, err
	}
	t, err := s.get(ctx, id)
	if err != nil {
		return Transaction{}, err
	}
	return *t, nil
}

// Commit decides a transaction by hand, for a producer that vanished. Deciding again what is decided changes nothing,
// and moves what was not moved yet. ErrConflict says that it was rolled back, or that one of its halves was never
// published.
func Commit(ctx context.Context, b *ferry.Broker, id string) (Transaction, error) {
	return byHand(ctx, b, id, Committed)
}

// Rollback is Commit for the other decision.
func Rollback(ctx context.Context, b *ferry.Broker, id string) (Transaction, error) {
	return byHand(ctx, b, id, RolledBack)
}

func byHand(ctx context.Context, b *ferry.Broker, id string, to State) (Transaction, error) {
	s, err := storeFor(b, id)
	if err != nil {
		return Transaction{}, err
	}
	t, err := s.get(ctx, id)
	switch {
	case err != nil:
		return Transaction{}, err
	case t.State != Open && t.State != to:
		return *t, t.conflict(to)
	case t.State == Open && to == Committed:
		if err := s.whole(ctx, t); err != nil {
			return *t, err
		}
	}
	again := t.State == to
	if !again {
		if t, err = s.decide(ctx, *t, to, ByOperator); err != nil {
			return Transaction{}, err
		}
	}
	switch {
	case t.Done:
	case again:
		if err = s.resume(ctx, t); err == nil && !t.mayBeLate() {
			s.done(ctx, t)
		}
	default:
		s.finish(ctx, t, nil)
	}
	return *t, err
}

// storeFor returns where a transaction lies.
func storeFor(b *ferry.Broker, id string) (store, error) {
	if b == nil {
		return store{}, driver.NewError(ferry.ErrInvalid, "the broker is nil",
			"open one first, with open.URL for example", nil)
	}
	return newStore(b), driver.CheckName("transaction", id)
}
