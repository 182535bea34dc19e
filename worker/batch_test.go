package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

func bodies(ms []*ferry.Msg[[]byte]) string {
	var all []string
	for _, m := range ms {
		all = append(all, string(m.Value))
	}
	return strings.Join(all, " ")
}

func TestBatchFillsOrWaits(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		begin := time.Now()
		var log journal
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			log.add("%v: %s", time.Since(begin), bodies(ms))
			return nil
		}, worker.BatchSize(3), worker.BatchWait(2*time.Second))
		stop := start(t, w)
		pause(0)
		r.publish(topic, []string{"a", "b", "c", "d"})
		pause(time.Second)
		r.publish(topic, []string{"e"})
		pause(time.Minute)
		mustStop(t, stop)
		equal(t, log.all(), []string{"0s: a b c", "2s: d e"})
		if g := r.group(topic); g.Acked != 5 {
			t.Errorf("%+v", g)
		}
	})
}

func TestBatchOutcomes(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string // acked, waiting, dead, dropped
	}{
		{"nil", nil, "4 0 0 0"},
		{"one error for all", errBilling, "0 4 0 0"},
		{"one decision for all", worker.Fatal(errBilling), "0 0 4 0"},
		{"each its own", worker.ItemErrors{nil, errBilling, worker.Fatal(errBilling), worker.Drop(nil)}, "1 1 1 1"},
		{"each nil", worker.ItemErrors{nil, nil, nil, nil}, "4 0 0 0"},
		{"too few", worker.ItemErrors{nil}, "0 4 0 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				w := worker.New(r.broker, worker.Options{Retry: ferry.Delays(time.Hour)})
				worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
					if len(ms) != 4 {
						t.Errorf("a batch of %d", len(ms))
					}
					return tc.err
				}, worker.BatchSize(4))
				r.publish(topic, numbered(4))
				stop := start(t, w)
				pause(time.Minute)
				mustStop(t, stop)
				g := r.group(topic)
				if got := fmt.Sprint(g.Acked, g.Waiting, g.Dead, g.Dropped); got != tc.want {
					t.Errorf("acked, waiting, dead, dropped are %s, want %s", got, tc.want)
				}
			})
		})
	}
}

func TestBatchKeepsKeysInOrder(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 4, Retry: ferry.Delays(time.Minute)})
		var mu sync.Mutex
		next := map[string]int{}
		failed := false
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			mu.Lock()
			defer mu.Unlock()
			errs := make(worker.ItemErrors, len(ms))
			seen := map[string]bool{}
			for i, m := range ms {
				if string(m.Value) == "7:3" && !failed {
					failed = true
					errs[i] = errBilling // those of key 7 behind it come again
					seen["7"] = true
					continue
				}
				if seen[m.Key] {
					continue
				}
				if want := fmt.Sprintf("%s:%d", m.Key, next[m.Key]); string(m.Value) != want {
					t.Errorf("%s where %s is due", m.Value, want)
				}
				next[m.Key]++
			}
			return errs
		}, worker.BatchSize(16), worker.BatchWait(10*time.Millisecond))
		for i := range 10 {
			for k := range 10 {
				r.publish(topic, []string{fmt.Sprintf("%d:%d", k, i)}, ferry.Key(fmt.Sprint(k)))
			}
		}
		stop := start(t, w)
		pause(5 * time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 100 || !failed || g.Redelivered != 0 {
			t.Errorf("%+v, failed: %v", g, failed)
		}
	})
}

func TestBatchDecodesEachMessage(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		var got []int
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[int]) error {
			for _, m := range ms {
				got = append(got, m.Value)
			}
			if slices.Contains(got, 3) {
				panic("three")
			}
			return nil
		}, worker.MaxAttempts(1))
		for _, text := range []string{"1", "{", "3"} {
			m := &ferry.Message{Topic: topic, Body: []byte(text), ContentType: "application/json"}
			if _, err := r.broker.Publish(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		equal(t, got, []int{1, 3})
		var reasons []string
		for _, e := range r.browse(topic, driver.StateDead) {
			reasons = append(reasons, string(e.Body)+" "+string(e.Dead.Reason))
		}
		slices.Sort(reasons)
		equal(t, reasons, []string{"1 panic", "3 panic", "{ invalid_message"})
	})
}

func TestBatchTimeout(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{MaxAttempts: 1})
		forever := make(chan struct{})
		worker.HandleBatch(w, topic, func(context.Context, []*ferry.Msg[[]byte]) error { <-forever; return nil },
			worker.Timeout(time.Second))
		r.publish(topic, numbered(3))
		r.keyed(topic, "k", 3)
		stop := start(t, w)
		pause(time.Minute)
		dead := r.browse(topic, driver.StateDead)
		if len(dead) != 6 || dead[0].Dead.Reason != driver.ReasonTimeout {
			t.Errorf("%d dead letters, %+v", len(dead), r.group(topic))
		}
		close(forever)
		mustStop(t, stop)
	})
}

func TestEmitInABatchIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		var err error
		worker.HandleBatch(w, topic, func(ctx context.Context, _ []*ferry.Msg[[]byte]) error {
			err = worker.Emit(ctx, "next", []byte("x"))
			return nil
		})
		r.publish(topic, []string{"x"})
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		if !errors.Is(err, ferry.ErrUnsupported) {
			t.Errorf("Emit returned %v", err)
		}
	})
}

func TestSuspectInABatchRunsAlone(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		suspect(r, 3, "suspect")
		r.publish(topic, []string{"a", "b"})
		w := worker.New(r.broker, worker.Options{})
		var log journal
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			log.add("%s", bodies(ms))
			return nil
		})
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		equal(t, slices.Sorted(slices.Values(log.all())), []string{"a b", "suspect"})
	})
}

func TestItemErrorsShowEachError(t *testing.T) {
	t.Parallel()
	err := error(worker.ItemErrors{nil, errBilling, worker.Drop(nil)})
	if !errors.Is(err, errBilling) || err.Error() != "timeout to billing\ndropped" {
		t.Errorf("%q", err)
	}
	if text := (worker.ItemErrors{nil}).Error(); text != "no errors" {
		t.Errorf("%q", text)
	}
}

// One message of a batch loses its lease: its handler is cancelled, and the others are given back uncounted.
func TestBatchThatLosesALease(t *testing.T) {
	broken(t, func(t *testing.T, r *rig, d *faulty) {
		w := worker.New(r.broker, worker.Options{Lease: 3 * time.Second})
		var log journal
		worker.HandleBatch(w, topic, func(ctx context.Context, ms []*ferry.Msg[[]byte]) error {
			log.add("%s", bodies(ms))
			if len(log.all()) == 1 {
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), ferry.ErrLeaseLost) {
					t.Error(context.Cause(ctx))
				}
			}
			return ctx.Err()
		}, worker.BatchSize(3))
		r.publish(topic, []string{"a", "b", "c"})
		d.set(func() { d.lose = "b" })
		stop := start(t, w)
		pause(1500 * time.Millisecond)
		if s := w.Stats().Consumers[0]; s.LeasesLost != 1 || s.Refused != 1 || s.Released != 2 {
			t.Errorf("%+v", s)
		}
		d.set(func() { d.lose = "" })
		pause(time.Minute)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 3 {
			t.Errorf("%q, %+v", log.all(), g)
		}
	})
}

func TestBatchThatEndsItsGoroutine(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{Concurrency: 1})
		worker.HandleBatch(w, topic, func(context.Context, []*ferry.Msg[[]byte]) error { runtime.Goexit(); return nil },
			worker.MaxAttempts(1))
		r.publish(topic, numbered(3))
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		if g := r.group(topic); g.Dead != 3 {
			t.Errorf("%+v", g)
		}
	})
}

// explosive panics when it is decoded.
type explosive struct{ N int }

func (e *explosive) UnmarshalJSON(data []byte) error {
	if string(data) == "0" {
		panic("cannot be decoded")
	}
	return json.Unmarshal(data, &e.N)
}

// TestBatchDecodingPanics: a codec that panics fails its own message, and neither the others nor the process.
func TestBatchDecodingPanics(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w := worker.New(r.broker, worker.Options{})
		var got []int
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[explosive]) error {
			for _, m := range ms {
				got = append(got, m.Value.N)
			}
			return nil
		}, worker.MaxAttempts(1))
		for _, text := range []string{"1", "0", "2"} {
			m := &ferry.Message{Topic: topic, Body: []byte(text), ContentType: "application/json"}
			if _, err := r.broker.Publish(context.Background(), m); err != nil {
				t.Fatal(err)
			}
		}
		stop := start(t, w)
		pause(time.Second)
		mustStop(t, stop)
		equal(t, got, []int{1, 2})
		dead := r.browse(topic, driver.StateDead)
		if len(dead) != 1 || dead[0].Dead.Reason != driver.ReasonPanic || string(dead[0].Body) != "0" {
			t.Errorf("%+v", dead)
		}
	})
}
