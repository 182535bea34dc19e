package transaction

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const (
	tries      = 5                      // of a step whose outcome is not known
	firstPause = 100 * time.Millisecond // between them
	rounds     = 20                     // of a decision that another write came before
)

// store is where transactions lie.
type store struct {
	broker *ferry.Broker
	kv     driver.KV
	log    *slog.Logger
}

func newStore(b *ferry.Broker) store {
	return store{broker: b, kv: b.Driver().KV(), log: b.Logger()}
}

// apply makes one write, also when the answer to it is lost.
func (s store) apply(ctx context.Context, id string, w driver.Write) (v driver.Value, err error) {
	w.Request = rand.Text()
	err = repeated(ctx, func() error {
		r := s.kv.Apply(ctx, bucketOf(id), driver.KVOptions{}, w)[0]
		v = r.Value
		return r.Err
	})
	return v, err
}

// repeated does something again while its outcome is not known. It may be done twice.
func repeated(ctx context.Context, do func() error) (err error) {
	for range tries {
		if err = do(); !errors.Is(err, driver.ErrUnknown) || !sleep(ctx, firstPause) {
			return err
		}
	}
	return err
}

// sleep waits, and reports whether it waited to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// get returns a transaction: one that is not done, or was done within keepFor.
func (s store) get(ctx context.Context, id string) (*Transaction, error) {
	vs, err := s.kv.Get(ctx, bucketOf(id), openPrefix+id, donePrefix+id)
	switch {
	case err != nil:
		return nil, err
	case vs[0].Revision != 0:
		return decode(id, vs[0], false)
	case vs[1].Revision != 0:
		return decode(id, vs[1], true)
	}
	return nil, driver.NewError(ferry.ErrNotFound, fmt.Sprintf("there is no transaction %s", id),
		fmt.Sprintf("'ferry transaction ls' lists those that are not done; one that is done is known for %v", keepFor), nil)
}

// decide writes a decision, unless there is one: the same is as good, the other one is ErrConflict. It returns the
// transaction as it is decided.
func (s store) decide(ctx context.Context, t Transaction, to State, by string) (*Transaction, error) {
	for range rounds {
		t.State, t.By = to, by
		v, err := s.apply(ctx, t.ID, driver.Write{Name: openPrefix + t.ID, Data: t.encode(),
			If: driver.Condition(t.revision)})
		if err == nil {
			t.revision, t.Written = v.Revision, v.Written
			return &t, nil
		}
		if !errors.Is(err, driver.ErrConflict) {
			return nil, err
		}
		found, err := s.get(ctx, t.ID)
		switch {
		case err != nil:
			return nil, err
		case found.State != Open && found.State != to:
			return found, found.conflict(to)
		case found.State == to:
			return found, nil
		case by != ByProducer && to == Committed: // another half came meanwhile
			if err := s.whole(ctx, found); err != nil {
				return nil, err
			}
		}
		t = *found
	}
	return nil, driver.NewError(ferry.ErrConflict, fmt.Sprintf("transaction %s is changed all the time", t.ID),
		"its producer still publishes; try again later", nil)
}

// conflict is the error of who decides otherwise than was decided.
func (t *Transaction) conflict(to State) error {
	hint := "its messages are published; what they tell of has to be undone by further messages"
	if t.State == RolledBack {
		hint = "nothing of it is published; do the work in another transaction"
	}
	return driver.NewError(ferry.ErrConflict,
		fmt.Sprintf("transaction %s cannot be %s: it was %s by the %s", t.ID, to.words(), t.State.words(), t.By), hint, nil)
}

func (s State) words() string {
	if s == RolledBack {
		return "rolled back"
	}
	return string(s)
}

// whole says which half of a transaction is not held, or nil. Its producer knows it; all others have to look before
// they commit: it may have been killed between the list of halves and the halves.
func (s store) whole(ctx context.Context, t *Transaction) error {
	for _, h := range t.Halves {
		e, err := s.held(ctx, h)
		if err != nil {
			return err
		}
		if e == nil {
			return driver.NewError(ferry.ErrConflict,
				fmt.Sprintf("half %s of transaction %s is not in topic %s", h.ID, t.ID, h.Topic),
				"its producer was stopped before it had published all of them: roll it back", nil)
		}
	}
	return nil
}

// held returns a half as the broker holds it; nil if it does not hold it, any more or yet.
func (s store) held(ctx context.Context, h Half) (*ferry.Entry, error) {
	es, err := s.broker.Driver().Get(ctx, ferry.Target{Topic: h.Topic, ID: h.ID})
	switch {
	case errors.Is(err, driver.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case len(es) == 1 && es[0].State == driver.StateHeld:
		return &es[0], nil
	}
	return nil, nil
}
