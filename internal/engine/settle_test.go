package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// lossyStore is a store that loses what is written while failing is set.
type lossyStore struct {
	*mapStore
	failing bool
}

type lostRound struct{ writtenRound }

func (lostRound) Wait(context.Context, bool) error { return errors.New("lost") }

func (s *lossyStore) Append(b Batch, synced bool) Round {
	if s.mapStore.Append(b, synced); s.failing {
		return lostRound{}
	}
	return writtenRound{}
}

// TestEverySettlementOfACallIsWaitedFor has the last settlement of a call store nothing: those before it are stored,
// and waited for, all the same. There are more than one critical section applies.
func TestEverySettlementOfACallIsWaitedFor(t *testing.T) {
	t.Parallel()
	store := &lossyStore{mapStore: newMapStore()}
	o := storeOptions(store.mapStore, 0)
	o.Store = store
	e := New(o)
	s := subscribe(t, e, driver.SubscribeOptions{})
	for i := range 2*settleChunk + 1 {
		publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i)})
	}
	ds := take(t, s, 2*settleChunk+1)
	ss := make([]driver.Settlement, len(ds))
	for i, d := range ds {
		ss[i] = driver.Settlement{Delivery: d}
	}
	ss[len(ss)-1].Emit = []*driver.Message{{Topic: "t", ID: ""}} // refused
	store.failing = true
	errs := s.Settle(context.Background(), ss)
	store.failing = false
	for i, err := range errs[:len(errs)-1] {
		if !errors.Is(err, driver.ErrUnknown) {
			t.Fatalf("settlement %d, whose write was lost: %v", i, err)
		}
	}
	if !errors.Is(errs[len(errs)-1], driver.ErrInvalid) {
		t.Errorf("a follow-up without an id: %v", errs[len(errs)-1])
	}
	if err := e.Close(context.Background()); err != nil {
		t.Error(err)
	}
}
