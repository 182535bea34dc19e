package worker_test

import (
	"context"
	"hash/fnv"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// chance is a number from 0 to n-1 that only depends on the text.
func chance(text string, n uint32) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return h.Sum32() % n
}

// Without faults every delivery says first or retry: what is given back unseen comes as if for the first time.
func TestCausesWithoutFaults(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		for i := range 20 {
			r.keyed(topic, strconv.Itoa(i), 20)
		}
		r.publish(topic, numbered(100))
		var mu sync.Mutex
		causes := map[driver.Cause]int{}
		handle := func(_ context.Context, d *ferry.Delivery) error {
			mu.Lock()
			causes[d.Cause]++
			mu.Unlock()
			if n := chance(body(d), 100); n < 5 && r.group(topic).Acked > 100 {
				time.Sleep(5 * time.Second) // more is held than can start in time
			}
			if d.Attempt == 1 && chance(body(d)+"fails", 4) == 0 {
				return worker.RetryAfter(errBilling, time.Duration(chance(body(d), 3))*time.Second)
			}
			return nil
		}
		for range 3 { // workers come and go, in order
			w := worker.New(r.broker, worker.Options{Concurrency: 4})
			worker.HandleRaw(w, topic, handle)
			stop := start(t, w)
			pause(7 * time.Second)
			mustStop(t, stop)
			if s := w.Stats().Consumers[0]; s.Released == 0 {
				t.Error("nothing was given back")
			}
		}
		w := worker.New(r.broker, worker.Options{Concurrency: 4})
		worker.HandleRaw(w, topic, handle)
		stop := start(t, w)
		pause(time.Hour)
		mustStop(t, stop)
		g := r.group(topic)
		if g.Acked != 500 || causes[driver.CauseFirst] != 500 || causes[driver.CauseRetry] < 50 || len(causes) != 2 {
			t.Errorf("%v, %+v", causes, g)
		}
	})
}

// Members of a batch that were handled and go back behind one that failed say so. Those that no handler saw do not.
func TestCausesOfABatch(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		for i := range 10 {
			r.keyed(topic, strconv.Itoa(i), 30)
		}
		var mu sync.Mutex
		seen := map[string]bool{}
		causes := map[driver.Cause]int{}
		w := worker.New(r.broker, worker.Options{Concurrency: 2})
		worker.HandleBatch(w, topic, func(_ context.Context, ms []*ferry.Msg[[]byte]) error {
			mu.Lock()
			defer mu.Unlock()
			errs := make(worker.ItemErrors, len(ms))
			for i, m := range ms {
				causes[m.Cause]++
				if first := m.Cause == driver.CauseFirst; first == seen[m.ID] {
					t.Errorf("%s: seen %v, cause %v", m.Value, seen[m.ID], m.Cause)
				}
				seen[m.ID] = true
				if m.Attempt == 1 && chance(string(m.Value), 8) == 0 {
					errs[i] = errBilling
				}
			}
			return errs
		}, worker.BatchSize(7), worker.Retry(ferry.Delays(time.Second)))
		stop := start(t, w)
		pause(time.Hour)
		mustStop(t, stop)
		if g := r.group(topic); g.Acked != 300 || causes[driver.CauseReleased] == 0 ||
			causes[driver.CauseRetry] == 0 || len(causes) != 3 {
			t.Errorf("%v, %+v", causes, g)
		}
	})
}
