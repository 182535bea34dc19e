package result_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/result"
	"github.com/ferrymq/ferry/worker"
)

var errBilling = errors.New("timeout to billing")

// How an attempt ends is kept, whichever way it ends, with the attempt that it tells of.
func TestStates(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler func() error
		state   result.State
		text    string
	}{
		{"success", func() error { return nil }, result.Done, ""},
		{"error", func() error { return errBilling }, result.Retrying, "timeout to billing"},
		{"fatal", func() error { return worker.Fatal(errBilling) }, result.Failed, "timeout to billing"},
		{"drop", func() error { return worker.Drop(errBilling) }, result.Cancelled, "timeout to billing"},
		{"park", func() error { return worker.Park(time.Hour) }, result.Waiting, ""},
		{"retry later", func() error {
			return worker.RetryAfter(errBilling, time.Hour)
		}, result.Retrying, "timeout to billing"},
		{"panic", func() error { panic("no order") }, result.Retrying, "panic: no order"},
		{"panic with a decision", func() error {
			panic(worker.Fatal(errBilling))
		}, result.Failed, "panic: timeout to billing"},
		{"goexit", func() error { runtime.Goexit(); return nil }, result.Retrying,
			"the handler ended its goroutine (runtime.Goexit)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, func(_ *testing.T, r *rig) {
				r.handle(func(context.Context, *ferry.Delivery) error { return c.handler() }, worker.Retry(ferry.Delays(time.Hour)))
				id := r.publish("x")
				pause(time.Second)
				r.is(id, c.state, c.text)
			})
		})
	}
}

// A message passes through its states; the last attempt that fails makes it failed, and a replay makes it run again.
func TestStatesOfOneMessage(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		begun := make(chan struct{})
		outcome := make(chan error)
		r.handle(func(context.Context, *ferry.Delivery) error {
			begun <- struct{}{}
			return <-outcome
		}, worker.MaxAttempts(2), worker.Retry(ferry.Delays(time.Minute)))
		id := r.publish("x", ferry.Delay(time.Minute))
		r.is(id, result.Waiting, "")
		<-begun
		r.is(id, result.Running, "")
		outcome <- errBilling
		pause(time.Second)
		r.is(id, result.Retrying, "timeout to billing")
		<-begun
		if s := r.is(id, result.Running, ""); s.Attempt != 2 {
			t.Errorf("attempt %d", s.Attempt)
		}
		outcome <- errBilling
		pause(time.Second)
		r.is(id, result.Failed, "timeout to billing")
		if errs := r.broker.Driver().Move(context.Background(),
			[]driver.Move{{Target: driver.Target{Topic: topic, Group: group, ID: id}}}); errs[0] != nil {
			t.Fatal(errs[0])
		}
		<-begun
		r.is(id, result.Running, "")
		outcome <- nil
		pause(time.Second)
		if s := r.is(id, result.Done, ""); s.Left <= 59*time.Minute || s.Left > time.Hour {
			t.Errorf("kept for %v", s.Left)
		}
		pause(time.Hour)
		if _, err := result.Get(context.Background(), r.broker, topic, group, id); !errors.Is(err, ferry.ErrNotFound) {
			t.Errorf("after its TTL: %v", err)
		}
	})
}

// A message that somebody cancels while it runs is cancelled, not failed.
func TestCancelled(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		begun := make(chan struct{})
		r.handle(func(ctx context.Context, _ *ferry.Delivery) error {
			close(begun)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		id := r.publish("x")
		<-begun
		r.worker.Cancel(topic, group, id)
		_, err := result.Wait[string](context.Background(), r.broker, topic, group, id)
		if !errors.Is(err, result.ErrCancelled) || errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

// The result is there before the message is acknowledged: the hook runs between both.
func TestStoredBeforeTheAck(t *testing.T) {
	t.Parallel()
	inner, err := memory.New(context.Background(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var r *rig
	seen := make(chan error, 1)
	r = newRig(t, faulty.New(inner), ferry.Hooks{Succeeded: func(ctx context.Context, e ferry.Event) {
		s, err := result.Get(ctx, r.broker, topic, group, e.Delivery.ID)
		if err == nil && s.State != result.Done {
			err = fmt.Errorf("it is %s", s.State)
		}
		seen <- err
	}})
	r.handle(func(context.Context, *ferry.Delivery) error { return nil })
	r.publish("x")
	if err := <-seen; err != nil {
		t.Error(err)
	}
}

// delivery is a claim of one message, made so long after the first.
func delivery(after time.Duration, attempt int) *ferry.Delivery {
	return &ferry.Delivery{Message: &ferry.Message{Topic: topic, ID: "m1"}, Group: group, Attempt: attempt, Deliveries: 1,
		ClaimedAt: time.Unix(1_800_000_000, 0).Add(after), Token: token(fmt.Sprint(after, attempt))}
}

type token string

func (t token) String() string { return string(t) }

// A holder that lost its lease and does not know it cannot replace what the next one returned; the next one replaces
// what it had.
func TestLateWriterIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		keep := r.keep(result.Options{})
		returns := func(d *ferry.Delivery, value string) (err error) {
			_ = keep(func(ctx context.Context, _ *ferry.Delivery) error {
				err = result.Return(ctx, value)
				return nil
			})(context.Background(), d)
			return err
		}
		value := func() string {
			v, err := result.Wait[string](context.Background(), r.broker, topic, group, "m1")
			if err != nil {
				t.Error(err)
			}
			return v
		}
		stale := make(chan struct{})
		late := make(chan error)
		go func() {
			_ = keep(func(ctx context.Context, _ *ferry.Delivery) error {
				result.Progress(ctx, 1, 2, "half") // it has a revision of its own
				<-stale
				late <- result.Return(ctx, "late")
				return nil
			})(context.Background(), delivery(0, 1))
		}()
		pause(time.Second)
		if err := returns(delivery(time.Minute, 1), "newer"); err != nil || value() != "newer" {
			t.Errorf("a newer delivery: %v", err)
		}
		close(stale)
		if err := <-late; !errors.Is(err, ferry.ErrLeaseLost) || value() != "newer" {
			t.Errorf("a late one: %v", err)
		}
		if err := returns(delivery(0, 1), "later"); !errors.Is(err, ferry.ErrLeaseLost) || value() != "newer" {
			t.Errorf("one that wrote nothing before: %v", err)
		}
		if err := returns(delivery(time.Minute, 2), "retried"); err != nil || value() != "retried" {
			t.Errorf("the next attempt, claimed at the same time: %v", err)
		}
	})
}

// A write that is not answered is found out: neither lost nor taken for another's.
func TestReturnWithLostAnswers(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"not applied":            faulty.Fail(ferry.ErrNotApplied),
		"answer lost":            faulty.Lose(ferry.ErrUnknown),
		"not known, not applied": faulty.Fail(ferry.ErrUnknown),
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				r.driver.Set(faulty.Write, faulty.Once(fault))
				r.handle(func(ctx context.Context, _ *ferry.Delivery) error {
					return result.Return(ctx, "total")
				}, worker.MaxAttempts(1))
				got, err := result.Wait[string](context.Background(), r.broker, topic, group, r.publish("x"))
				if got != "total" || err != nil {
					t.Errorf("%q, %v", got, err)
				}
			})
		})
	}
}

// Where results cannot be kept, messages are handled all the same. Only who returns one is told.
func TestNoRoomHarmsNobody(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.driver.Set(faulty.Write, faulty.Fail(driver.BucketFull("results.00")))
		var told error
		r.handle(func(ctx context.Context, d *ferry.Delivery) error {
			if string(d.Body) == "returns" {
				told = result.Return(ctx, "total")
			}
			return nil
		})
		r.publish("returns")
		r.publish("does not")
		pause(time.Second)
		if !errors.Is(told, ferry.ErrFull) || !strings.Contains(told.Error(), "TTL") {
			t.Errorf("Return: %v", told)
		}
		stats, err := r.broker.Driver().Stats(context.Background(), topic)
		if err != nil || stats.Groups[0].Acked != 2 {
			t.Errorf("%+v, %v", stats, err)
		}
	})
}

func TestReturnRefuses(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		errs := make(chan error, 2)
		r.handle(func(ctx context.Context, _ *ferry.Delivery) error {
			errs <- result.Return(ctx, make([]byte, driver.MaxValue))
			errs <- result.Return(ctx, make(chan int))
			return nil
		})
		id := r.publish("x")
		if err := <-errs; !errors.Is(err, ferry.ErrTooLarge) || !strings.Contains(err.Error(), "address") {
			t.Errorf("too large: %v", err)
		}
		if err := <-errs; !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("a channel: %v", err)
		}
		if _, err := result.Wait[string](context.Background(), r.broker, topic, group,
			id); !errors.Is(err, ferry.ErrNotFound) || !strings.Contains(err.Error(), "result.Return") {
			t.Errorf("Wait for what was not returned: %v", err)
		}
		if err := result.Return(context.Background(), 1); !errors.Is(err, ferry.ErrInvalid) ||
			!strings.Contains(err.Error(), "result.Keep") {
			t.Errorf("outside a handler: %v", err)
		}
		result.Progress(context.Background(), 1, 2, "nobody listens")
		for _, o := range []result.Options{{TTL: -1}, {TTL: time.Millisecond}} {
			if _, err := result.Keep(r.broker, o); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("Keep %+v: %v", o, err)
			}
		}
		if _, err := result.Keep(nil, result.Options{}); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("Keep without a broker: %v", err)
		}
	})
}

// What fails after a result was returned takes its place, and a second Return replaces the first.
func TestReturnIsNotTheEnd(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.handle(func(ctx context.Context, d *ferry.Delivery) error {
			if err := errors.Join(result.Return(ctx, "first"), result.Return(ctx, "second")); err != nil {
				return err
			}
			if string(d.Body) == "fails" {
				return worker.Fatal(errBilling)
			}
			result.Progress(ctx, 9, 9, "after the result")
			return nil
		})
		ctx := context.Background()
		if v, err := result.Wait[string](ctx, r.broker, topic, group, r.publish("x")); v == "first" {
			t.Errorf("%q, %v", v, err) // between the two it may be seen
		}
		failed, done := r.publish("fails"), r.publish("y")
		pause(time.Second)
		r.is(failed, result.Failed, "timeout to billing")
		if v, err := result.Wait[string](ctx, r.broker, topic, group, done); v != "second" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	})
}

// Progress is written at most twice a second, and the last of it when the handler ends, however that is.
func TestProgress(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.handle(func(ctx context.Context, d *ferry.Delivery) error {
			for i := range 1000 {
				result.Progress(ctx, int64(i+1), 1000, "rows")
				time.Sleep(10 * time.Millisecond)
			}
			if string(d.Body) == "fails" {
				return worker.Fatal(errBilling)
			}
			return nil
		})
		id := r.publish("x")
		pause(5 * time.Second)
		if s := r.is(id, result.Running, ""); s.Progress.Done < 440 || s.Progress.Done > 510 || s.Progress.Total != 1000 ||
			s.Progress.Note != "rows" {
			t.Errorf("half way it says %+v", s.Progress)
		}
		pause(5 * time.Second)
		if s := r.is(id, result.Done, ""); s.Progress.Done != 1000 {
			t.Errorf("in the end it says %+v", s.Progress)
		}
		if n := r.driver.Calls(faulty.Write); n < 15 || n > 22 {
			t.Errorf("%d writes in 10 s", n)
		}
		id = r.publish("fails")
		pause(11 * time.Second)
		if s := r.is(id, result.Failed, "timeout to billing"); s.Progress.Done != 1000 {
			t.Errorf("of one that failed it says %+v", s.Progress)
		}
	})
}

// When the process ends between the result and the ack, the message is handled again, and its result is that of the
// newer delivery.
func TestCrashBeforeTheAck(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.driver.Set(faulty.Settle, faulty.Once(faulty.Fail(ferry.ErrLeaseLost))) // the ack, as if the process had ended
		runs := 0
		r.handle(func(ctx context.Context, _ *ferry.Delivery) error {
			runs++
			if runs == 2 {
				time.Sleep(time.Minute)
			}
			return result.Return(ctx, runs)
		})
		id := r.publish("x")
		value := func() (v int, err error) { return result.Wait[int](context.Background(), r.broker, topic, group, id) }
		if v, err := value(); v != 1 || err != nil {
			t.Errorf("before the crash: %d, %v", v, err)
		}
		pause(20 * time.Second) // the lease is over
		r.is(id, result.Running, "")
		if v, err := value(); v != 2 || err != nil {
			t.Errorf("of the newer delivery: %d, %v", v, err)
		}
		pause(time.Second)
		if stats, err := r.broker.Driver().Stats(context.Background(), topic); err != nil || stats.Groups[0].Acked != 1 {
			t.Errorf("%+v, %v", stats, err)
		}
	})
}

// Given to the worker and to the handler, it keeps results once.
func TestKeptTwice(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.handle(func(ctx context.Context, _ *ferry.Delivery) error {
			return result.Return(ctx, "total")
		}, worker.Use(r.keep(result.Options{})))
		v, err := result.Wait[string](context.Background(), r.broker, topic, group, r.publish("x"))
		pause(time.Second)
		if v != "total" || err != nil || r.driver.Calls(faulty.Write) != 1 {
			t.Errorf("%q, %v, %d writes", v, err, r.driver.Calls(faulty.Write))
		}
	})
}
