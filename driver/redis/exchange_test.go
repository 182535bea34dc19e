package redis_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// isExchange reports whether a command settles and claims. No other script has a flag behind what a claim has.
func isExchange(cmd goredis.Cmder) bool {
	words := cmd.Args()
	return isScript(cmd) && len(words) > claimWords && (words[claimWords] == "0" || words[claimWords] == "1")
}

// swap is a subscription with a Receive that waits behind what is held.
type swap struct {
	*testing.T
	c        *goredis.Client
	d        *redis.Driver
	s        driver.Subscription
	held     []*driver.Delivery
	cancel   context.CancelFunc // of that Receive
	received chan []*driver.Delivery
	failed   chan error

	counting  atomic.Bool
	exchanges atomic.Int64 // calls
	// instead of the next exchange
	do atomic.Pointer[func(context.Context, goredis.Cmder, goredis.ProcessHook) error]
}

// newSwap publishes messages with a key each, or none, and takes what o allows of them.
func newSwap(t *testing.T, o driver.SubscribeOptions, most int, keys ...string) *swap {
	w := &swap{T: t, received: make(chan []*driver.Delivery, 1), failed: make(chan error, 1)}
	w.c = goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	w.c.AddHook(hook{process: w.process})
	t.Cleanup(func() { _ = w.c.Close() })
	var err error
	if w.d, err = redis.New(t.Context(),
		redis.Options{Client: w.c, Prefix: namespace(), Fallback: time.Hour}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.d.Close(context.Background()) })
	o.Topic, o.Instance = "jobs", "tester"
	if w.s, err = w.d.Subscribe(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		m := &driver.Message{ID: string(rune('a' + i)), Topic: "jobs", Key: key}
		if _, err := w.d.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.held = take(t, w.s, most)
	w.d.Deafen() // so that nothing but a settlement ends the wait
	w.wait(most)
	return w
}

// wait begins a Receive, and returns when it waits.
func (w *swap) wait(most int) {
	ctx, cancel := context.WithCancel(w.Context())
	w.cancel = cancel
	go func() {
		ds, err := w.s.Receive(ctx, most)
		w.received <- ds
		w.failed <- err
	}()
	for redis.Waiting(w.s) == 0 {
		runtime.Gosched()
	}
	w.counting.Store(true)
}

func (w *swap) process(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
	if w.counting.Load() && isExchange(cmd) && w.known(ctx, cmd) {
		w.exchanges.Add(1)
		if do := w.do.Swap(nil); do != nil {
			return (*do)(ctx, cmd, next)
		}
	}
	return next(ctx, cmd)
}

// known reports whether the server has the script of a command, and will not ask for its text.
func (w *swap) known(ctx context.Context, cmd goredis.Cmder) bool {
	sha, _ := cmd.Args()[1].(string)
	there, err := w.c.ScriptExists(ctx, sha).Result()
	return cmd.Name() == "eval" || err == nil && there[0]
}

func (w *swap) instead(do func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error) {
	w.do.Store(&do)
}

// ack acknowledges all that is held, and returns the first error.
func (w *swap) ack() error {
	ss := make([]driver.Settlement, len(w.held))
	for i, x := range w.held {
		ss[i].Delivery = x
	}
	for _, err := range w.s.Settle(context.Background(), ss) {
		if err != nil {
			return err
		}
	}
	return nil
}

// got demands what the Receive that waited returns.
func (w *swap) got(want string) []*driver.Delivery {
	w.Helper()
	ds, err := <-w.received, <-w.failed
	if err != nil || names(ds) != want {
		w.Fatalf("received %q, %v; want %q", names(ds), err, want)
	}
	return ds
}

func names(ds []*driver.Delivery) (all string) {
	for _, x := range ds {
		all += x.ID
	}
	return all
}

// sound demands that this many messages are acked, this many are left, and the structures agree.
func (w *swap) sound(acked uint64, left int64) {
	w.Helper()
	report, err := w.d.Audit(w.Context(), "jobs", false)
	if err != nil || len(report.Problems) > 0 || report.Stats.Groups[0].Acked != acked || report.Stats.Messages != left {
		w.Errorf("audit: %+v, %v; want %d acked, %d left", report, err, acked, left)
	}
}

// swaps are the two reasons why a Receive waits that a settlement can end.
var swaps = map[string]func(t *testing.T) *swap{
	"room": func(t *testing.T) *swap {
		return newSwap(t, driver.SubscribeOptions{MaxInflight: 2}, 2, "", "", "", "")
	},
	"key": func(t *testing.T) *swap { return newSwap(t, driver.SubscribeOptions{MaxRun: 2}, 2, "k", "k", "k", "k") },
}

func onSwaps(t *testing.T, run func(w *swap)) {
	t.Parallel()
	for name, newOne := range swaps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(newOne(t))
		})
	}
}

// A settlement that makes room, or ends a run, brings a waiting Receive its next messages in the same call.
func TestSettleAndClaimAreOneCall(t *testing.T) {
	onSwaps(t, func(w *swap) {
		if err := w.ack(); err != nil {
			w.Fatal(err)
		}
		ds := w.got("cd")
		if n := w.exchanges.Load(); n != 1 {
			w.Errorf("%d calls that settle and claim, want 1", n)
		}
		if ds[0].Deliveries != 1 || ds[0].Attempt != 1 || ds[0].Cause != driver.CauseFirst {
			w.Errorf("delivery %d, attempt %d, %v", ds[0].Deliveries, ds[0].Attempt, ds[0].Cause)
		}
		w.held = ds
		if err := w.ack(); err != nil {
			w.Fatal(err)
		}
		w.sound(4, 0)
	})
}

// Sent twice, as client libraries do, it changes nothing the second time.
func TestExchangeCanBeRepeated(t *testing.T) {
	onSwaps(t, func(w *swap) {
		w.instead(func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
			if err := next(ctx, cmd); err != nil {
				return err
			}
			return next(ctx, cmd)
		})
		if err := w.ack(); err != nil {
			w.Fatal(err)
		}
		w.got("cd")
		w.sound(2, 2)
	})
}

// When the answer is lost, both are told so. What was claimed comes with the next Receive; what was settled is gone.
func TestLostExchangeIsFound(t *testing.T) {
	onSwaps(t, func(w *swap) {
		w.instead(func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
			_ = next(ctx, cmd)
			return lose(cmd)
		})
		if err := w.ack(); !errors.Is(err, driver.ErrUnknown) {
			w.Errorf("settled with %v, want unknown", err)
		}
		if ds, err := <-w.received, <-w.failed; !errors.Is(err, driver.ErrUnknown) {
			w.Errorf("received %v, %v; want unknown", names(ds), err)
		}
		if err := w.ack(); !errors.Is(err, driver.ErrLeaseLost) {
			w.Errorf("settled again with %v, want lost: it was applied", err)
		}
		if ds := take(w, w.s, 2); names(ds) != "cd" || ds[0].Deliveries != 1 {
			w.Errorf("got %s, delivery %d", names(ds), ds[0].Deliveries)
		}
		w.sound(2, 2)
	})
}

// When the call is refused, nothing has happened, to either.
func TestRefusedExchangeChangesNothing(t *testing.T) {
	onSwaps(t, func(w *swap) {
		w.instead(func(_ context.Context, cmd goredis.Cmder, _ goredis.ProcessHook) error {
			cmd.SetErr(goredis.ErrPoolTimeout)
			return goredis.ErrPoolTimeout
		})
		if err := w.ack(); !errors.Is(err, driver.ErrNotApplied) {
			w.Errorf("settled with %v, want not applied", err)
		}
		if ds, err := <-w.received, <-w.failed; !errors.Is(err, driver.ErrNotApplied) {
			w.Errorf("received %v, %v; want not applied", names(ds), err)
		}
		w.sound(0, 4)
		w.wait(2)
		if err := w.ack(); err != nil {
			w.Fatal(err)
		}
		w.got("cd")
		w.sound(2, 2)
	})
}

// A Receive that is cancelled while a settlement claims for it leaves what it would have got to the next one.
func TestCancelledReceiveLeavesItsExchange(t *testing.T) {
	onSwaps(t, func(w *swap) {
		w.instead(func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
			w.cancel()
			if err := <-w.failed; !errors.Is(err, context.Canceled) { // it returns although the call is under way
				w.Errorf("the cancelled Receive returned %v", err)
			}
			return next(ctx, cmd)
		})
		if err := w.ack(); err != nil {
			w.Fatal(err)
		}
		if ds := take(w, w.s, 2); names(ds) != "cd" {
			w.Errorf("got %s", names(ds))
		}
		w.sound(2, 2)
	})
}

// Where the lease is over, nothing is settled, and no more is claimed than there is room for.
func TestExchangeIsFenced(t *testing.T) {
	t.Parallel()
	w := newSwap(t, driver.SubscribeOptions{MaxInflight: 2, Lease: time.Minute}, 2, "", "", "", "")
	timer := "{" + w.d.Prefix() + ":jobs:0}:g:default:timer"
	leases, err := w.c.ZRange(t.Context(), timer, 0, -1).Result()
	if err != nil || len(leases) != 1 {
		t.Fatalf("leases %q, %v", leases, err)
	}
	// the server believes that it has ended
	if err := w.c.ZAdd(t.Context(), timer, goredis.Z{Score: 1, Member: leases[0]}).Err(); err != nil {
		t.Fatal(err)
	}
	if err := w.ack(); !errors.Is(err, driver.ErrLeaseLost) {
		t.Fatalf("settled with %v, want lost", err)
	}
	if n := w.exchanges.Load(); n != 1 {
		t.Fatalf("%d calls that settle and claim, want 1", n)
	}
	if ds := w.got("ab"); ds[0].Deliveries != 2 || ds[0].Cause != driver.CauseLeaseExpired {
		t.Errorf("delivery %d, %v", ds[0].Deliveries, ds[0].Cause)
	}
	w.sound(0, 4)
}

// A settlement that is not simple makes no room yet, so that nothing is claimed with it. Both get what they want, one
// after the other.
func TestExchangeNeedsRoom(t *testing.T) {
	t.Parallel()
	w := newSwap(t, driver.SubscribeOptions{MaxInflight: 2}, 2, "", "", "", "")
	key := "{" + w.d.Prefix() + ":jobs:0}:g:default:lease"
	leases, err := w.c.HGetAll(t.Context(), key).Result()
	if err != nil || len(leases) != 1 {
		t.Fatalf("leases %q, %v", leases, err)
	}
	for token, record := range leases { // as after a change that we have not heard of
		if err := w.c.HSet(t.Context(), key, token, "other "+record).Err(); err != nil {
			t.Fatal(err)
		}
	}
	w.instead(func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
		err := next(ctx, cmd)
		halves, _ := cmd.(interface{ Slice() ([]any, error) }).Slice()
		if fmt.Sprint(halves) != "[[slow] [slow]]" {
			t.Errorf("the answer is %v, %v; want that both halves are not simple", halves, err)
		}
		return err
	})
	if err := w.ack(); err != nil {
		t.Fatal(err)
	}
	w.got("cd")
	w.sound(2, 2)
}

// A foreign key that only one of the two needs does not stop the other.
func TestExchangeBesideForeignKeys(t *testing.T) {
	t.Parallel()
	for suffix, settles := range map[string]bool{"ids": false, "g:default:next": true} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			w := newSwap(t, driver.SubscribeOptions{MaxRun: 1}, 1, "k", "k")
			key := "{" + w.d.Prefix() + ":jobs:0}:" + suffix
			if err := w.c.Rename(t.Context(), key, key+"-saved").Err(); err != nil && !settles {
				t.Fatal(err)
			}
			if err := w.c.Set(t.Context(), key, "foreign", 0).Err(); err != nil {
				t.Fatal(err)
			}
			err := w.ack()
			if settles && err != nil || !settles && !errors.Is(err, driver.ErrNotApplied) {
				t.Errorf("settled with %v", err)
			}
			if n := w.exchanges.Load(); n != 1 {
				t.Errorf("%d calls that settle and claim, want 1", n)
			}
			if !settles {
				w.cancel()
			}
			if ds, err := <-w.received, <-w.failed; len(ds) > 0 || settles && !errors.Is(err, driver.ErrNotApplied) ||
				!settles && !errors.Is(err, context.Canceled) {
				t.Errorf("received %s, %v", names(ds), err)
			}
		})
	}
}

// What a settlement lets go beyond what it claims is announced to others.
func TestExchangeWakesOthers(t *testing.T) {
	t.Parallel()
	w := newSwap(t, driver.SubscribeOptions{}, 2, "k", "l", "k", "l")
	w.cancel()
	<-w.failed
	<-w.received
	w.wait(1)
	other, err := redis.New(t.Context(),
		redis.Options{URL: redistest.Shared(t).URL(), Prefix: w.d.Prefix(), Fallback: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, other)
	s := subscribe(t, other, "jobs")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := make(chan []*driver.Delivery)
	go func() { ds, _ := s.Receive(ctx, 1); got <- ds }()
	for redis.Waiting(s) == 0 {
		runtime.Gosched()
	}
	if err := w.ack(); err != nil {
		t.Fatal(err)
	}
	if a, b := w.got("c"), <-got; names(b) != "d" {
		t.Errorf("one got %s, the other %s", names(a), names(b))
	}
}
