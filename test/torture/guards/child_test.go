package guards_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard"
	guardredis "github.com/ferrymq/ferry/guard/redis"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/worker"
)

// What the guards are set to, in every process.
const (
	topic  = "guarded"
	limit  = 8
	window = 250 * time.Millisecond
	slots  = 3
	lease  = 2 * time.Second
)

// What a child is told.
const (
	childURL   = "FERRY_TEST_GUARDS_URL"
	childStore = "FERRY_TEST_GUARDS_STORE"
	childTape  = "FERRY_TEST_GUARDS_TAPE"
)

// child is one worker with every guard, until it is killed.
func child() error {
	ctx := context.Background()
	b, err := open.URL(ctx, os.Getenv(childURL))
	if err != nil {
		return err
	}
	s, err := guardredis.Open(ctx, guardredis.Options{URL: os.Getenv(childStore)})
	if err != nil {
		return err
	}
	t, err := openTape(os.Getenv(childTape))
	if err != nil {
		return err
	}
	layers, err := guards(watched{s, t})
	if err != nil {
		return err
	}
	w := worker.New(b, worker.Options{Concurrency: 8, Lease: lease, MaxDeliveries: 1000})
	worker.HandleRaw(w, topic, handler(t), worker.Use(append([]worker.Middleware{traced}, layers.Middleware()...)...),
		worker.Retry(ferry.Delays(20*time.Millisecond)), worker.MaxAttempts(1000))
	return w.Run(ctx)
}

func guards(s guard.Store) (l guard.Layers, err error) {
	var errs [4]error
	l.Limit, errs[0] = guard.NewLimiter(s,
		guard.LimiterOptions{Limits: []guard.Limit{{Name: "key", Rule: guard.Rule{Limit: limit, Window: window}}}})
	l.Concurrency, errs[1] = guard.NewConcurrency(s, guard.ConcurrencyOptions{Name: "downstream", Key: guard.Constant("x"),
		Max: slots, Lease: lease})
	l.Dedup, errs[2] = guard.NewDedup(s, guard.DedupOptions{Name: "once", Lease: lease})
	l.Breaker, errs[3] = guard.NewBreaker(guard.BreakerOptions{Name: "down", Failures: 3, Open: 100 * time.Millisecond,
		Store: s})
	return l, errors.Join(errs[:]...)
}

var errDownstream = errors.New("the downstream failed")

// handler takes a few milliseconds, and fails the first time for some messages.
func handler(t *tape) worker.Handler {
	return func(ctx context.Context, d *ferry.Delivery) error {
		key, number, _ := strings.Cut(string(d.Body), ":")
		seq, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("body %q: %w", d.Body, err)
		}
		e := event{Kind: started, ID: d.ID, Key: key, Seq: seq}
		if tr, ok := ctx.Value(traceKey{}).(*trace); ok {
			e.Slot, e.Mark = tr.slot.Add(lease), tr.mark.Add(lease)
		}
		t.write(e)
		time.Sleep(time.Duration(1+seq%5) * time.Millisecond)
		if d.Attempt == 1 && seq%7 == 3 {
			t.write(event{Kind: failed, ID: d.ID, Key: key, Seq: seq})
			return errDownstream
		}
		t.write(event{Kind: done, ID: d.ID, Key: key, Seq: seq})
		return nil
	}
}

// trace is when the guards of one message were asked for what they gave.
type trace struct{ slot, mark time.Time }

type traceKey struct{}

func traced(next worker.Handler) worker.Handler {
	return func(ctx context.Context, d *ferry.Delivery) error {
		return next(context.WithValue(ctx, traceKey{}, &trace{}), d)
	}
}

// watched is a store whose answers are written down.
type watched struct {
	guard.Store
	tape *tape
}

func (w watched) Take(ctx context.Context, t store.Take) (guard.Verdict, error) {
	from := time.Now().Round(0)
	v, err := w.Store.Take(ctx, t)
	if err == nil && v.Admitted && !t.Peek {
		w.tape.write(event{Kind: admitted, ID: t.ID, Key: t.Items[0].Key, Ticket: v.Ticket, From: from})
	}
	return v, err
}

func (w watched) Return(ctx context.Context, t store.Take, ticket uint64) error {
	w.tape.write(event{Kind: returned, ID: t.ID, Key: t.Items[0].Key, Ticket: ticket})
	return w.Store.Return(ctx, t, ticket)
}

func (w watched) Acquire(ctx context.Context, r store.SlotRequest) (store.Slot, error) {
	from := time.Now()
	s, err := w.Store.Acquire(ctx, r)
	if tr, ok := ctx.Value(traceKey{}).(*trace); ok && r.Token == 0 && s.Held {
		tr.slot = from.Round(0)
	}
	return s, err
}

func (w watched) Begin(ctx context.Context, r store.MarkRequest) (store.Mark, error) {
	from := time.Now()
	m, err := w.Store.Begin(ctx, r)
	if tr, ok := ctx.Value(traceKey{}).(*trace); ok && r.Token == 0 && m.Ours {
		tr.mark = from.Round(0)
	}
	return m, err
}

func (w watched) Complete(ctx context.Context, r store.MarkRequest) error {
	err := w.Store.Complete(ctx, r)
	if err == nil {
		w.tape.write(event{Kind: marked, ID: r.ID[strings.LastIndex(r.ID, "/")+1:]})
	}
	return err
}
