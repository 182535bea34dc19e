package kafka_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

var atomically = driver.PublishOptions{Atomic: true}

func followups(ids ...string) (ms []*driver.Message) {
	for _, id := range ids {
		m := message(id, id) // over several partitions
		m.Topic, m.OwnID = "followups", true
		ms = append(ms, m)
	}
	return ms
}

// TestAtomicPublishIsOneStep: what one refused record or a lost end leaves of a batch is nothing, and the same again
// stores it once.
func TestAtomicPublishIsOneStep(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(req kmsg.Request) (kmsg.Response, error, bool){
		"end refused":      func(req kmsg.Request) (kmsg.Response, error, bool) { return refusal(req), nil, true },
		"end not answered": func(kmsg.Request) (kmsg.Response, error, bool) { return nil, errors.New("cut"), true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fake(t)
			d := openTransactional(t, c.ListenAddrs(), "a"+rand.Text()[:6]+".")
			defer end(t, d)
			var planted atomic.Int32
			c.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
				if planted.Add(1) > 1 {
					return nil, nil, false
				}
				return plant(req)
			})
			batch := followups("a", "b", "c", "d")
			_, err := d.Publish(t.Context(), batch, atomically)
			if planted.Load() == 0 {
				t.Fatal("no transaction was ended")
			}
			if err != nil {
				hinted(t, err, driver.ErrNotApplied)
				if _, err = d.Publish(t.Context(), batch, atomically); err != nil {
					t.Fatalf("the same again: %v", err)
				}
			}
			only(t, d, "a", "b", "c", "d")
		})
	}
}

// TestAtomicPublishRefusedPart: when the brokers refuse the records of one partition, nobody sees those of the others.
func TestAtomicPublishRefusedPart(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openTransactional(t, c.ListenAddrs(), "a"+rand.Text()[:6]+".")
	defer end(t, d)
	publish(t, d, followups("before")...)
	refuseProduce(c, "followups", kerr.MessageTooLarge, 1)
	rs, err := d.Publish(t.Context(), followups("a", "b", "c", "d"), atomically)
	hinted(t, err, driver.ErrTooLarge)
	for _, r := range rs {
		if r.Err == nil || !r.Ref.IsZero() {
			t.Errorf("receipt %+v of a refused batch", r)
		}
	}
	wrong := followups("e", "f")
	wrong[1].Body = make([]byte, 2<<20)
	_, err = d.Publish(t.Context(), wrong, atomically)
	hinted(t, err, driver.ErrTooLarge)
	if _, err := d.Publish(t.Context(), followups("a", "e"), atomically); err != nil { // neither is known
		t.Fatal(err)
	}
	only(t, d, "before", "a", "e")
}

// TestRecordInDoubtIsNotTheTransaction: nobody knows what became of a record of a transaction that is aborted, and it
// does not matter: nothing of the transaction is stored. The error says that alone.
func TestRecordInDoubtIsNotTheTransaction(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openTransactional(t, c.ListenAddrs(), "a"+rand.Text()[:6]+".")
	defer end(t, d)
	publish(t, d, message("parent", ""))
	publish(t, d, followups("before")...)
	s := subscribe(t, d, "x")
	x := receive(t, s)
	refuseProduce(c, "followups", kerr.InvalidRecord, 2)
	_, err := d.Publish(t.Context(), followups("a"), atomically)
	for name, err := range map[string]error{
		"publish": err, "settle": s.Settle(t.Context(), []driver.Settlement{emitting(x, driver.Ack, "b")})[0],
	} {
		if !errors.Is(err, driver.ErrNotApplied) || errors.Is(err, driver.ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	persist(t, s, emitting(x, driver.Ack, "b"))
	only(t, d, "before", "b")
}

// TestAtomicPublishWithoutTransactions says what to do.
func TestAtomicPublishWithoutTransactions(t *testing.T) {
	t.Parallel()
	d := openFake(t, fake(t))
	_, err := d.Publish(t.Context(), followups("a"), atomically)
	hinted(t, err, driver.ErrUnsupported)
}

// TestCrossedIDs: calls that publish the same ids in opposite order do not wait for each other for ever, and each id is
// stored once.
func TestCrossedIDs(t *testing.T) {
	t.Parallel()
	d := openTransactional(t, fake(t).ListenAddrs(), "a"+rand.Text()[:6]+".")
	defer end(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var calls sync.WaitGroup
	stored := make([]atomic.Int32, 10)
	for round := range stored {
		a, b := fmt.Sprint("a", round), fmt.Sprint("b", round)
		for i, ids := range [][]string{{a, b}, {b, a}, {a, b}, {b, a}} {
			calls.Go(func() {
				rs, err := d.Publish(ctx, followups(ids...), driver.PublishOptions{Atomic: i > 1})
				if err != nil {
					t.Error(err)
				}
				for _, r := range rs {
					if !r.Duplicate {
						stored[round].Add(1)
					}
				}
			})
		}
	}
	calls.Wait()
	for round := range stored {
		if n := stored[round].Load(); n != 2 {
			t.Errorf("round %d: %d receipts of two ids say stored", round, n)
		}
	}
}
