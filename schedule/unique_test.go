package schedule_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/schedule"
	"github.com/ferrymq/ferry/worker"
)

// report is a message of which there is one at a time. Nobody consumes its topic unless a test does.
func (r *rig) report(o ...ferry.PublishOption) *ferry.Message {
	r.Helper()
	m, err := ferry.NewMessage(r.Context(), r.b, "reports", 1, append(o, ferry.Unique("report", time.Hour))...)
	r.ok(err)
	return m
}

// published returns the ids of what waits in the topic of reports.
func (r *rig) published() (ids []string) {
	r.Helper()
	page, err := r.d.Browse(r.Context(), driver.Query{Topic: "reports", Group: "default", State: driver.StateReady})
	r.ok(err)
	for _, e := range page.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// A unique message is not published while the one before it is not settled: the tick passes, the status says why, and
// so does Trigger. The first tick after it is gone publishes again.
func TestUnique(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s", Message: r.report()})
		r.put(schedule.Schedule{Name: "other", Spec: "@every 10s"})
		r.run()
		r.pass(35 * time.Second)
		ids := r.published()
		if len(ids) != 1 {
			r.Fatalf("%d reports at once", len(ids))
		}
		if st := r.status("a"); !strings.Contains(st.Problem, ids[0]) || !st.Next.Equal(begin.Add(40*time.Second)) ||
			st.Message.Unique == nil {
			r.Errorf("%+v", st)
		}
		_, err := r.s.Trigger(r.Context(), "a")
		r.wants(err, ferry.ErrConflict)
		r.expect(10*time.Second, 20*time.Second, 30*time.Second) // of the other
		r.ok(r.d.Delete(r.Context(), []driver.Target{{Topic: "reports", ID: ids[0]}})[0])
		r.pass(45 * time.Second)
		if again := r.published(); len(again) != 1 || again[0] == ids[0] || r.status("a").Problem != "" {
			r.Errorf("%v after %v, %+v", again, ids, r.status("a"))
		}
	})
}

// A tick whose unique id cannot be claimed comes again, and a claim whose message is refused for good is given back.
func TestUniqueFaults(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.faults.Set(faulty.Write, func(_ context.Context, c faulty.Call, _ func()) error {
			if strings.HasPrefix(c.Bucket, driver.UniqueBucket) && time.Since(begin) < 12*time.Second {
				return driver.ErrNotApplied
			}
			return nil
		})
		r.faults.Set(faulty.Settle, func(_ context.Context, c faulty.Call, _ func()) error {
			if time.Since(begin) > 18*time.Second && time.Since(begin) < 22*time.Second && len(c.Settlement.Emit) == 2 {
				return driver.NewError(driver.ErrUnsupported, "no such thing here", "", nil)
			}
			return nil
		})
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s", Message: r.report()})
		r.run()
		r.pass(19 * time.Second)
		ids := r.published()
		if len(ids) != 1 {
			r.Fatalf("%d reports", len(ids))
		}
		r.ok(r.d.Delete(r.Context(), []driver.Target{{Topic: "reports", ID: ids[0]}})[0])
		r.pass(25 * time.Second)
		if n := len(r.published()); n != 0 {
			r.Errorf("%d reports although it is refused", n)
		}
		r.pass(31 * time.Second)
		if n := len(r.published()); n != 1 {
			r.Errorf("%d reports after one was refused", n)
		}
	})
}

// Whatever becomes of settlements, there is one report at a time, and after it the next.
func TestUniqueUnknownSettlement(t *testing.T) {
	virtual(t, nil, func(r *rig) {
		r.faults.Set(faulty.Settle, unsure(r.d))
		var running, handled atomic.Int64
		w := worker.New(r.b, worker.Options{})
		worker.Handle(w, "reports", func(ctx context.Context, m *ferry.Msg[int]) error {
			if running.Add(1) != 1 {
				r.Errorf("two reports at once, at %s", time.Since(begin))
			}
			time.Sleep(15 * time.Second)
			running.Add(-1)
			handled.Add(1)
			return nil
		})
		stop := runtest.Start(r, w.Run)
		r.put(schedule.Schedule{Name: "a", Spec: "@every 10s", Message: r.report()})
		r.run()
		r.run()
		r.pass(2009 * time.Second)
		r.end()
		stop()
		if n := handled.Load(); n < 60 { // a report takes two or three ticks
			r.Errorf("%d reports in 200 ticks", n)
		}
	})
}
