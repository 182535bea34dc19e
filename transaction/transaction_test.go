package transaction_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/transaction"
)

// Nothing is seen before the commit, and everything after it; nothing after a rollback. Deciding again the same changes
// nothing.
func TestCommitAndRollback(t *testing.T) {
	virtual(t, func(r *rig) {
		ctx := r.Context()
		tx := r.begin(r.b, transaction.Options{Kind: "orders", Subject: "17"})
		r.publish(tx, "a", "b")
		r.publish(tx, "c", "c")
		r.has(0, 1, "a", "b")
		if all := open(t, r.b); len(all) != 1 || all[0].ID != tx.ID() || all[0].Count != 4 ||
			all[0].State != transaction.Open || all[0].Kind != "orders" || all[0].Subject != "17" {
			r.Errorf("%+v", all)
		}
		for range 2 {
			r.ok(tx.Commit(ctx))
		}
		r.has(1, 0, "a", "b")
		r.has(2, 0, "c")
		r.wants(tx.Rollback(ctx), ferry.ErrConflict)
		_, err := tx.Publish(ctx, halves("a")...)
		r.wants(err, ferry.ErrConflict)

		tx = r.begin(r.b, transaction.Options{})
		r.publish(tx, "a", "b")
		for range 2 {
			r.ok(tx.Rollback(ctx))
		}
		r.wants(tx.Commit(ctx), ferry.ErrConflict)
		r.has(1, 0, "a", "b")
		if all := open(t, r.b); len(all) != 0 {
			r.Errorf("%+v", all)
		}
		r.ok(r.begin(r.b, transaction.Options{}).Commit(ctx)) // without any half
	})
}

// A delay counts from the commit.
func TestDelay(t *testing.T) {
	virtual(t, func(r *rig) {
		tx := r.begin(r.b, transaction.Options{})
		_, err := tx.Publish(r.Context(), &ferry.Message{Topic: "a", Delay: time.Hour, TTL: 3 * time.Hour})
		r.ok(err)
		time.Sleep(30 * minute)
		r.ok(tx.Commit(r.Context()))
		time.Sleep(59 * minute)
		r.has(0, 0, "a")
		time.Sleep(2 * minute)
		r.has(1, 0, "a")
	})
}

// Whoever decides otherwise is told what was decided, by whom, and what to do; as long as it is known.
func TestDecidedTwice(t *testing.T) {
	virtual(t, func(r *rig) {
		ctx := r.Context()
		for _, commit := range []bool{true, false} {
			tx := r.begin(r.b, transaction.Options{})
			r.publish(tx, "a", "b")
			by, other, want, late := transaction.Commit, transaction.Rollback, transaction.Committed, tx.Rollback
			if !commit {
				by, other, want, late = transaction.Rollback, transaction.Commit, transaction.RolledBack, tx.Commit
			}
			for range 2 {
				got, err := by(ctx, r.b, tx.ID())
				r.ok(err)
				if got.State != want || got.By != transaction.ByOperator {
					r.Errorf("%+v", got)
				}
			}
			_, err := other(ctx, r.b, tx.ID())
			r.wants(err, ferry.ErrConflict)
			var text *ferry.Error
			if errors.As(err, &text); text == nil || text.Hint == "" || !strings.Contains(text.Text, "by the operator") {
				r.Errorf("%v", err)
			}
			r.wants(late(ctx), ferry.ErrConflict)
			got, err := transaction.Get(ctx, r.b, tx.ID())
			r.ok(err)
			// one that is rolled back by another waits for late halves
			if got.State != want || got.Count != 2 || got.Done != commit {
				r.Errorf("%+v", got)
			}
		}
		r.has(1, 0, "a", "b")
		r.resolve(r.b, transaction.ResolverOptions{})
		time.Sleep(3 * minute)
		if all := open(t, r.b); len(all) != 0 {
			r.Errorf("%+v", all)
		}
		tx := r.begin(r.b, transaction.Options{})
		r.publish(tx, "a")
		r.ok(tx.Commit(ctx))
		time.Sleep(11 * minute)
		_, err := transaction.Rollback(ctx, r.b, tx.ID())
		r.wants(err, ferry.ErrNotFound)
	})
}

// A producer that is killed before or after any of its steps leaves all of its halves or none, as its work was done or
// not; and nothing behind.
func TestProducerIsKilled(t *testing.T) {
	virtual(t, func(r *rig) {
		var worked atomic.Bool
		r.resolve(r.b, transaction.ResolverOptions{
			Checks: map[string]transaction.Check{
				"orders": func(context.Context, transaction.Transaction) (transaction.State, error) {
					if worked.Load() {
						return transaction.Committed, nil
					}
					return transaction.RolledBack, nil
				}}})
		all, steps := 0, 0
		for dies := true; dies; steps++ {
			for _, after := range []bool{false, true} {
				worked.Store(false)
				m := newMortal(r.d, steps+1, after)
				err := produce(r.Context(), r.broker(m), &worked)
				if dies = m.died.Load(); !dies {
					r.ok(err)
				}
				time.Sleep(5 * minute)
				if worked.Load() {
					all++
				}
				r.has(all, 0, "a", "b", "c")
				if left := open(t, r.b); len(left) != 0 {
					r.Fatalf("killed at step %d: %+v", steps+1, left)
				}
			}
		}
		if steps < 11 { // 2 writes and 2 publishes, the decision, 3 moves, 2 notes
			r.Errorf("only %d steps", steps)
		}
	})
}

// produce is a producer: halves, its work, the commit.
func produce(ctx context.Context, b *ferry.Broker, worked *atomic.Bool) error {
	tx, err := transaction.Begin(b, transaction.Options{Kind: "orders"})
	if err != nil {
		return err
	}
	if _, err := tx.Publish(ctx, halves("a", "b")...); err != nil {
		return err
	}
	if _, err := tx.Publish(ctx, halves("c")...); err != nil {
		return err
	}
	worked.Store(true)
	return tx.Commit(ctx)
}

// A resolver that is killed before or after any of its steps is followed by another, which ends what it began.
func TestResolverIsKilled(t *testing.T) {
	for _, want := range []transaction.State{transaction.Committed, transaction.RolledBack} {
		t.Run(string(want), func(t *testing.T) {
			virtual(t, func(r *rig) {
				o := transaction.ResolverOptions{
					Checks: map[string]transaction.Check{
						"orders": func(context.Context, transaction.Transaction) (transaction.State, error) { return want, nil }}}
				all := 0
				for steps := 1; steps <= 20; steps++ {
					for _, after := range []bool{false, true} {
						r.publish(r.begin(r.b, transaction.Options{Kind: "orders"}), "a", "b", "c")
						m := newMortal(r.d, steps, after)
						stop := r.resolve(r.broker(m), o)
						time.Sleep(2 * minute)
						stop()
						stop = r.resolve(r.b, o)
						time.Sleep(5 * minute)
						stop()
						if want == transaction.Committed {
							all++
						}
						r.has(all, 0, "a", "b", "c")
						if left := open(t, r.b); len(left) != 0 {
							r.Fatalf("killed at step %d: %+v", steps, left)
						}
					}
				}
			})
		})
	}
}

// What was moved before a kill is not touched again when another ends it: a dead letter stays one.
func TestMovedHalfIsLeftAlone(t *testing.T) {
	virtual(t, func(r *rig) {
		ctx := r.Context()
		m := newMortal(r.d, 5, false) // a write, a publish, the decision, one move of two
		tx := r.begin(r.broker(m), transaction.Options{})
		r.publish(tx, "a", "b")
		r.ok(tx.Commit(ctx))
		r.has(1, 0, "a")
		r.has(0, 1, "b")
		sub, err := r.d.Subscribe(ctx, driver.SubscribeOptions{Topic: "a", Instance: "i"})
		r.ok(err)
		ds, err := sub.Receive(ctx, 1)
		r.ok(err)
		r.ok(errors.Join(sub.Settle(ctx,
			[]driver.Settlement{{Delivery: ds[0], Outcome: driver.Dead, Failure: &driver.Failure{Reason: "fatal"}}})...))
		r.ok(sub.Close(ctx))
		r.resolve(r.b, transaction.ResolverOptions{})
		time.Sleep(minute)
		r.has(0, 0, "a")
		r.has(1, 0, "b")
		if st, err := r.d.Stats(ctx, "a"); err != nil || st.Groups[0].Dead != 1 {
			r.Errorf("%+v %v", st, err)
		}
	})
}

// A transaction whose producer was killed before all halves were stored cannot be committed, by nobody.
func TestPartIsNeverCommitted(t *testing.T) {
	virtual(t, func(r *rig) {
		ctx := r.Context()
		m := newMortal(r.d, 4, false)
		tx := r.begin(r.broker(m), transaction.Options{Kind: "orders"})
		r.publish(tx, "a")
		_, err := tx.Publish(ctx, halves("b")...) // listed, and not stored
		r.wants(err, ferry.ErrClosed)
		r.wants(tx.Commit(ctx), ferry.ErrConflict)
		_, err = transaction.Commit(ctx, r.b, tx.ID())
		r.wants(err, ferry.ErrConflict)
		r.resolve(r.b, transaction.ResolverOptions{Checks: map[string]transaction.Check{
			"orders": func(context.Context, transaction.Transaction) (transaction.State, error) {
				return transaction.Committed, nil
			}}})
		time.Sleep(30 * minute)
		r.has(0, 1, "a")
		_, err = transaction.Rollback(ctx, r.b, tx.ID())
		r.ok(err)
		r.has(0, 0, "a", "b")
	})
}

// A half that arrives after another has rolled its transaction back is deleted, too.
func TestLateHalf(t *testing.T) {
	virtual(t, func(r *rig) {
		ctx := r.Context()
		held, begun, end := faulty.New(r.d), make(chan struct{}), make(chan struct{})
		held.Set(faulty.Publish, func(context.Context, faulty.Call, func()) error {
			close(begun)
			<-end
			return nil
		})
		tx := r.begin(r.broker(held), transaction.Options{})
		done := make(chan error)
		go func() {
			_, err := tx.Publish(ctx, halves("a", "b")...)
			done <- err
		}()
		<-begun
		_, err := transaction.Rollback(ctx, r.b, tx.ID())
		r.ok(err)
		r.resolve(r.b, transaction.ResolverOptions{})
		time.Sleep(30 * time.Second)
		close(end)
		r.ok(<-done) // and the producer is killed
		r.has(0, 1, "a", "b")
		time.Sleep(minute)
		r.has(0, 0, "a", "b")
		if left := open(t, r.b); len(left) != 0 {
			r.Errorf("%+v", left)
		}
	})
}

// A transaction that nobody decides, and nobody can be asked about, is rolled back after its TTL. Its producer is told
// so.
func TestTimeout(t *testing.T) {
	virtual(t, func(r *rig) {
		tx := r.begin(r.b, transaction.Options{Kind: "unknown", TTL: 10 * minute})
		r.publish(tx, "a")
		r.resolve(r.b, transaction.ResolverOptions{})
		time.Sleep(9 * minute)
		r.publish(tx, "a") // its TTL counts from the last half
		time.Sleep(9 * minute)
		r.has(0, 2, "a")
		time.Sleep(2 * minute)
		r.has(0, 0, "a")
		err := tx.Commit(r.Context())
		r.wants(err, ferry.ErrConflict)
		if !strings.Contains(err.Error(), "by the timeout") {
			r.Error(err)
		}
	})
}

// A check is asked after a while, again and again while it does not know, fails, panics or takes too long; by one
// resolver of several.
func TestCheckBack(t *testing.T) {
	virtual(t, func(r *rig) {
		begin := time.Now()
		var mu sync.Mutex
		var asked []time.Duration
		note := func() int {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, time.Since(begin).Truncate(10*time.Second))
			return len(asked)
		}
		check := func(ctx context.Context, tx transaction.Transaction) (transaction.State, error) {
			if tx.Kind != "orders" || tx.Subject != "17" || len(tx.Halves) != 1 || tx.Halves[0].Topic != "a" {
				t.Errorf("%+v", tx)
			}
			switch note() {
			case 1:
				return transaction.Open, nil
			case 2:
				return transaction.Committed, errors.New("no answer")
			case 3:
				panic("no")
			case 4:
				<-ctx.Done()
				return "", ctx.Err()
			case 5:
				return "perhaps", nil
			}
			return transaction.Committed, nil
		}
		for range 3 {
			r.resolve(r.b, transaction.ResolverOptions{Checks: map[string]transaction.Check{"orders": check}})
		}
		r.publish(r.begin(r.b, transaction.Options{Kind: "orders", Subject: "17"}), "a")
		time.Sleep(10 * minute)
		r.has(1, 0, "a")
		mu.Lock()
		defer mu.Unlock()
		if len(asked) != 6 || asked[0] != minute {
			r.Errorf("asked at %v", asked)
		}
		for i := 1; i < len(asked); i++ {
			if asked[i]-asked[i-1] < 30*time.Second {
				r.Errorf("asked at %v", asked)
			}
		}
	})
}

// A check that does not return when its time is over is asked once, and holds up neither other transactions nor the end
// of its own.
func TestCheckThatHangs(t *testing.T) {
	virtual(t, func(r *rig) {
		release, asked := make(chan struct{}), 0
		stop := r.resolve(r.b, transaction.ResolverOptions{Checks: map[string]transaction.Check{
			"hangs": func(context.Context, transaction.Transaction) (transaction.State, error) {
				asked++
				<-release
				return transaction.Committed, nil
			},
			"knows": func(context.Context, transaction.Transaction) (transaction.State, error) {
				return transaction.Committed, nil
			},
		}})
		r.publish(r.begin(r.b, transaction.Options{Kind: "hangs", TTL: 5 * minute}), "a")
		time.Sleep(2 * minute)
		r.publish(r.begin(r.b, transaction.Options{Kind: "knows"}), "b")
		time.Sleep(2 * minute)
		r.has(0, 1, "a")
		r.has(1, 0, "b")
		time.Sleep(2 * minute)
		r.has(0, 0, "a")
		close(release)
		stop()
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// What is not known to be written or stored is tried again, and done once.
func TestUnknownOutcome(t *testing.T) {
	virtual(t, func(r *rig) {
		d, doubt := faulty.New(r.d), faulty.EverySecond(faulty.Lose(driver.ErrUnknown))
		d.Set(faulty.Publish, doubt)
		d.Set(faulty.Write, doubt)
		d.Set(faulty.Move, faulty.EverySecond(faulty.Lose(driver.ErrUnknown))) // the first of a call
		b := r.broker(d)
		tx := r.begin(b, transaction.Options{})
		r.publish(tx, "a", "b")
		r.ok(tx.Commit(r.Context()))
		r.resolve(r.b, transaction.ResolverOptions{})
		time.Sleep(minute)
		r.has(1, 0, "a", "b")
		if left := open(t, r.b); len(left) != 0 {
			r.Errorf("%+v", left)
		}
	})
}

// A half that only lies in a spool cannot be committed.
func TestSpooledHalf(t *testing.T) {
	virtual(t, func(r *rig) {
		tx := r.begin(r.broker(spooling{r.d}), transaction.Options{})
		_, err := tx.Publish(r.Context(), halves("a")...)
		r.wants(err, ferry.ErrNotApplied)
		r.wants(tx.Commit(r.Context()), ferry.ErrConflict)
		r.ok(tx.Rollback(r.Context()))
	})
}

type spooling struct{ driver.Driver }

func (spooling) Publish(_ context.Context, ms []*driver.Message, _ driver.PublishOptions) ([]driver.Receipt, error) {
	return []driver.Receipt{{ID: ms[0].ID, Spooled: true}}, nil
}

// What is wrong is said before anything is written.
func TestInvalid(t *testing.T) {
	virtual(t, func(r *rig) {
		ctx := r.Context()
		for _, o := range []transaction.Options{{TTL: time.Millisecond}, {TTL: -1}, {TTL: 8 * 24 * time.Hour}, {Kind: "a b"},
			{Subject: strings.Repeat("x", 1025)}, {Subject: "\n"}} {
			_, err := transaction.Begin(r.b, o)
			r.wants(err, ferry.ErrInvalid)
		}
		_, err := transaction.Begin(nil, transaction.Options{})
		r.wants(err, ferry.ErrInvalid)
		tx := r.begin(r.b, transaction.Options{})
		for _, m := range []*ferry.Message{nil, {}, {Topic: "ferry.own"}, {Topic: "a", ID: "mine"},
			{Topic: "a", DedupID: "d", DedupWindow: time.Hour}, {Topic: "a", At: time.Now()},
			{Topic: "a", Unique: &driver.Unique{ID: "u", TTL: time.Hour}},
			{Topic: "a", Delay: driver.Hold}, {Topic: "a", TTL: time.Hour}} {
			_, err := tx.Publish(ctx, m)
			r.wants(err, ferry.ErrInvalid)
		}
		_, err = tx.Publish(ctx, halves(strings.Split(strings.Repeat("a ", 257), " ")[:257]...)...)
		r.wants(err, ferry.ErrTooLarge)
		_, err = tx.Publish(ctx)
		r.ok(err)
		// it fits into a value
		r.publish(tx, strings.Split(strings.TrimSpace(strings.Repeat(strings.Repeat("x", 128)+" ", 256)), " ")...)
		r.ok(tx.Rollback(ctx))
		if left := open(t, r.b); len(left) != 0 {
			r.Errorf("%+v", left)
		}
		for _, o := range []transaction.ResolverOptions{{After: -1}, {Every: time.Millisecond},
			{Checks: map[string]transaction.Check{"a": nil}}, {Checks: map[string]transaction.Check{"a b": nil}}} {
			_, err := transaction.NewResolver(r.b, o)
			r.wants(err, ferry.ErrInvalid)
		}
		_, err = transaction.NewResolver(nil, transaction.ResolverOptions{})
		r.wants(err, ferry.ErrInvalid)
		_, err = transaction.List(ctx, nil, transaction.Query{})
		r.wants(err, ferry.ErrInvalid)
		_, err = transaction.List(ctx, r.b, transaction.Query{Cursor: "99/"})
		r.wants(err, ferry.ErrInvalid)
		for _, id := range []string{"", "a b"} {
			_, err = transaction.Get(ctx, r.b, id)
			r.wants(err, ferry.ErrInvalid)
		}
		_, err = transaction.Commit(ctx, r.b, "none")
		r.wants(err, ferry.ErrNotFound)
	})
}
