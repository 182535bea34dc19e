package transaction_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/transaction"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	if child() {
		return
	}
	goleak.VerifyTestMain(kafkatest.Main(redistest.Main(m)))
}

// rig is a broker in virtual time, and what tests do with it.
type rig struct {
	*testing.T
	d driver.Driver
	b *ferry.Broker
}

func virtual(t *testing.T, f func(r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := memory.New(context.Background(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close(context.Background()) })
		r := &rig{T: t, d: d}
		r.b = r.broker(d)
		f(r)
	})
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) wants(err, kind error) {
	r.Helper()
	if !errors.Is(err, kind) {
		r.Errorf("%v, want %v", err, kind)
	}
}

// broker returns one on a driver that somebody else closes.
func (r *rig) broker(d driver.Driver) *ferry.Broker {
	r.Helper()
	b, err := ferry.New(d, ferry.Options{})
	r.ok(err)
	return b
}

func (r *rig) begin(b *ferry.Broker, o transaction.Options) *transaction.Tx {
	r.Helper()
	tx, err := transaction.Begin(b, o)
	r.ok(err)
	return tx
}

// publish stores a half in each topic.
func (r *rig) publish(tx *transaction.Tx, topics ...string) {
	r.Helper()
	_, err := tx.Publish(r.Context(), halves(topics...)...)
	r.ok(err)
}

func halves(topics ...string) (ms []*ferry.Message) {
	for _, topic := range topics {
		ms = append(ms, &ferry.Message{Topic: topic, Key: "k", Body: []byte("half in " + topic)})
	}
	return ms
}

// resolve runs a resolver until the test ends, or the function that it returns is called.
func (r *rig) resolve(b *ferry.Broker, o transaction.ResolverOptions) (stop func()) {
	r.Helper()
	res, err := transaction.NewResolver(b, o)
	r.ok(err)
	return runtest.Start(r, func(ctx context.Context) error {
		err := res.Run(ctx)
		if errors.Is(err, driver.ErrClosed) {
			return nil
		}
		return err
	})
}

// counts returns how many messages of a topic are ready and held.
func counts(t testing.TB, d driver.Driver, topic string) (ready, held int) {
	t.Helper()
	for state, n := range map[driver.State]*int{driver.StateReady: &ready, driver.StateHeld: &held} {
		p, err := d.Browse(context.Background(), driver.Query{Topic: topic, Group: driver.DefaultGroup, State: state})
		if err != nil && !errors.Is(err, driver.ErrNotFound) {
			t.Fatal(err)
		}
		*n = len(p.Entries)
	}
	return ready, held
}

// has demands how many messages of each topic are ready and held.
func (r *rig) has(ready, held int, topics ...string) {
	r.Helper()
	for _, topic := range topics {
		if gotReady, gotHeld := counts(r.T, r.d, topic); gotReady != ready || gotHeld != held {
			r.Errorf("topic %s: %d ready and %d held, want %d and %d", topic, gotReady, gotHeld, ready, held)
		}
	}
}

// open returns what is not done.
func open(t testing.TB, b *ferry.Broker) (all []transaction.Transaction) {
	t.Helper()
	for q := (transaction.Query{}); ; {
		p, err := transaction.List(context.Background(), b, q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Transactions...)
		if q.Cursor = p.Next; p.Next == "" {
			return all
		}
	}
}

// mortal is a connection that is cut, as by a kill of its process, before or after its n-th change of the broker.
type mortal struct {
	*faulty.Driver
	died atomic.Bool
}

func newMortal(d driver.Driver, step int, after bool) *mortal {
	m := new(mortal)
	m.Driver = changing(d, func(n int) faulty.Fault {
		if n < step {
			return nil
		}
		m.died.Store(true)
		if n == step && after {
			return faulty.Lose(driver.ErrClosed)
		}
		return faulty.Fail(driver.ErrClosed)
	})
	return m
}

// changing returns a driver with a fault for each of its changes, by their number from 1.
func changing(d driver.Driver, of func(n int) faulty.Fault) *faulty.Driver {
	f, fault := faulty.New(d), faulty.ByNumber(of)
	for _, op := range []faulty.Op{faulty.Publish, faulty.Move, faulty.Delete, faulty.Write} {
		f.Set(op, fault)
	}
	return f
}

const minute = time.Minute
