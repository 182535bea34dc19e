package monitor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/runtest"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(m)
}

// rig is a memory broker that can be made unreachable or to show other counts.
type rig struct {
	*testing.T
	driver.Driver
	broker *ferry.Broker
	away   atomic.Bool
	show   func(*driver.TopicStats)
	browse func(driver.Query) []driver.Entry
	usage  *driver.Usage
}

func (r *rig) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	if r.away.Load() {
		return nil, driver.NewError(driver.ErrNotApplied, "the server was not reached", "look whether it runs", nil)
	}
	return r.Driver.Topics(ctx, names...)
}

func (r *rig) Stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	s, err := r.Driver.Stats(ctx, topic)
	if r.show != nil {
		r.show(&s)
	}
	return s, err
}

func (r *rig) Usage(ctx context.Context) (driver.Usage, error) {
	if r.usage != nil {
		return *r.usage, nil
	}
	return r.Driver.Usage(ctx)
}

func (r *rig) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	if r.browse != nil {
		return driver.Page{Entries: r.browse(q)}, nil
	}
	return r.Driver.Browse(ctx, q)
}

func virtual(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, Driver: newMemory(t, memory.Options{})}
		b, err := ferry.New(r, ferry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r.broker = b
		t.Cleanup(func() { _ = r.Driver.Close(context.Background()) })
		f(t, r)
	})
}

func (r *rig) publish(n int, opts ...ferry.PublishOption) {
	r.Helper()
	for i := range n {
		if _, err := ferry.Publish(r.Context(), r.broker, "orders", []byte(fmt.Sprint(i)), opts...); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *rig) work(o worker.Options, h worker.Handler, opts ...worker.HandlerOption) (*worker.Worker, func()) {
	r.Helper()
	w := worker.New(r.broker, o)
	worker.HandleRaw(w, "orders", h, opts...)
	stop := runtest.Start(r, w.Run)
	synctest.Wait()
	return w, stop
}

func (r *rig) monitor(o monitor.Options) *monitor.Monitor {
	r.Helper()
	m, err := monitor.New(r.broker, o)
	if err != nil {
		r.Fatal(err)
	}
	return m
}

// want fails unless the health is so, for a reason that contains text.
func (r *rig) want(h monitor.Health, status monitor.Status, text string) {
	r.Helper()
	if h.Status != status || text != "" && !strings.Contains(fmt.Sprint(h.Reasons), text) {
		r.Errorf("health %s %v, want %s because of %q", h.Status, h.Reasons, status, text)
	}
}

func TestSnapshotCountsAndRates(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w, stop := r.work(worker.Options{Concurrency: 1}, func(context.Context,
			*ferry.Delivery) error {
			time.Sleep(time.Second)
			return nil
		})
		m := r.monitor(monitor.Options{Workers: []*worker.Worker{w}})
		m.Look(t.Context())
		r.publish(30)
		r.publish(1, ferry.Delay(time.Hour))
		time.Sleep(10500 * time.Millisecond)
		s := m.Look(t.Context())
		topic, q := s.Queues[0], s.Queues[1]
		if topic.Delayed != 1 || topic.In != 31 || q.Ready+q.Inflight != 20 || q.Acked != 10 || q.Consumers != 1 {
			t.Errorf("topic %+v and group %+v", topic, q)
		}
		if q.InPerSecond < 2.8 || q.OutPerSecond < 0.9 || q.OutPerSecond > 1 || q.Growth < 1.8 {
			t.Errorf("%.2f/s in, %.2f/s out, %.2f/s growth; want about 2.9, 0.95 and 1.9", q.InPerSecond, q.OutPerSecond,
				q.Growth)
		}
		if q.Oldest < 10*time.Second || s.Workers[0].Consumers[0].Acked != 10 || s.Backend.Memory == 0 || s.Err != nil {
			t.Errorf("oldest %v, worker %+v, backend %+v, error %v", q.Oldest, s.Workers[0], s.Backend, s.Err)
		}
		r.want(s.Health, monitor.Healthy, "")
		stop()
	})
}

// deadIsFine leaves dead letters out of the verdict.
var deadIsFine = monitor.Limits{Dead: monitor.Level[int64]{Degraded: -1, Unhealthy: -1}}

func TestErrorRate(t *testing.T) {
	for _, c := range []struct {
		failing int // of 100
		want    monitor.Status
	}{{0, monitor.Healthy}, {4, monitor.Healthy}, {5, monitor.Degraded}, {19, monitor.Degraded}, {20, monitor.Unhealthy}} {
		t.Run(fmt.Sprint(c.failing), func(t *testing.T) {
			virtual(t, func(t *testing.T, r *rig) {
				var n atomic.Int64
				w, stop := r.work(worker.Options{MaxAttempts: 1}, func(context.Context, *ferry.Delivery) error {
					if n.Add(1) <= int64(c.failing) {
						return errors.New("no")
					}
					return nil
				})
				r.publish(100)
				synctest.Wait()
				time.Sleep(time.Second)
				r.want(r.monitor(monitor.Options{Workers: []*worker.Worker{w}, Limits: deadIsFine}).Look(t.Context()).Health,
					c.want, "")
				stop()
			})
		})
	}
}

func TestAFewFailuresAreNoRate(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w, stop := r.work(worker.Options{MaxAttempts: 1}, func(context.Context,
			*ferry.Delivery) error {
			return errors.New("no")
		})
		r.publish(3)
		time.Sleep(time.Second)
		r.want(r.monitor(monitor.Options{Workers: []*worker.Worker{w}, Limits: deadIsFine}).Look(t.Context()).Health,
			monitor.Healthy, "")
		stop()
	})
}

func TestAgeBoundGrowthAndNobodyThere(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		if err := r.EnsureTopic(t.Context(), "orders", driver.TopicConfig{MaxMessages: 100}); err != nil {
			t.Fatal(err)
		}
		if err := r.EnsureGroup(t.Context(), "orders", "default", driver.GroupOptions{}); err != nil {
			t.Fatal(err)
		}
		m := r.monitor(monitor.Options{})
		r.want(m.Look(t.Context()).Health, monitor.Healthy, "")
		r.publish(60)
		r.want(m.Look(t.Context()).Health, monitor.Degraded, "nothing consumes")
		time.Sleep(61 * time.Second)
		r.want(m.Look(t.Context()).Health, monitor.Degraded, "has waited 1m1s")
		time.Sleep(10 * time.Minute)
		r.want(m.Look(t.Context()).Health, monitor.Unhealthy, "has waited 11m1s")
		for range 6 {
			r.publish(2)
			time.Sleep(time.Second)
			m.Look(t.Context())
		}
		r.publish(2)
		time.Sleep(time.Second)
		h := m.Look(t.Context()).Health
		r.want(h, monitor.Unhealthy, "has grown for 7 looks")
		r.want(h, monitor.Unhealthy, "74 % of its bound")
		if err := r.Pause(t.Context(), "orders", "default", true); err != nil {
			t.Fatal(err)
		}
		h = m.Look(t.Context()).Health
		r.want(h, monitor.Degraded, "bound") // it waits because somebody wants it to
		if len(h.Reasons) != 1 {
			t.Errorf("a paused group is judged: %v", h.Reasons)
		}
	})
}

func TestBrokerAwayAndBack(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		if err := r.EnsureTopic(t.Context(), "orders", driver.TopicConfig{}); err != nil {
			t.Fatal(err)
		}
		var seen []string
		m := r.monitor(monitor.Options{Interval: time.Second, Changed: func(_ context.Context, before, now monitor.Health) {
			seen = append(seen, string(before.Status)+">"+string(now.Status))
			panic("a hook may")
		}})
		stop := runtest.Start(t, m.Run)
		for _, away := range []bool{false, true, true, false} {
			r.away.Store(away)
			time.Sleep(2500 * time.Millisecond)
		}
		stop()
		if got := strings.Join(seen, " "); got != "healthy>unhealthy unhealthy>healthy" {
			t.Errorf("changes %q", got)
		}
	})
}

func TestLongRunningHandlerIsFound(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		w, stop := r.work(worker.Options{}, func(ctx context.Context, _ *ferry.Delivery) error {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return nil
		})
		var told []monitor.Stuck
		m := r.monitor(monitor.Options{Workers: []*worker.Worker{w},
			Stuck: func(_ context.Context, s []monitor.Stuck) { told = s }})
		r.publish(3)
		time.Sleep(9 * time.Minute)
		r.want(m.Look(t.Context()).Health, monitor.Healthy, "")
		time.Sleep(2 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		if err := m.Run(ctx); err != nil {
			t.Error(err)
		}
		if len(told) != 1 || told[0].Kind != monitor.LongRunning || told[0].Count != 3 || told[0].Oldest < 11*time.Minute ||
			told[0].ID == "" {
			t.Errorf("told of %+v, want 3 handlers for 11 minutes", told)
		}
		stop()
	})
}

// The memory broker leaves nothing stuck: what a broken one would show is put into its answers.
func TestStuckMessagesAreFound(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		if err := r.EnsureGroup(t.Context(), "orders", "default", driver.GroupOptions{}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.show = func(s *driver.TopicStats) {
			s.Delayed = 1
			s.Groups[0].Ready, s.Groups[0].Consumers, s.Groups[0].Received = 7, 1, 7
		}
		r.browse = func(q driver.Query) []driver.Entry {
			switch q.State {
			case driver.StateDelayed:
				return []driver.Entry{{Message: &driver.Message{ID: "late"}, DueAt: began},
					{Message: &driver.Message{ID: "soon"}, DueAt: began.Add(time.Hour)}}
			case driver.StateReady:
				return []driver.Entry{{Message: &driver.Message{ID: "dead"}, ExpiresAt: began}}
			}
			return nil
		}
		m := r.monitor(monitor.Options{})
		var s monitor.Snapshot
		for range 4 {
			time.Sleep(30 * time.Second)
			s = m.Look(t.Context())
		}
		found := map[monitor.StuckKind]monitor.Stuck{}
		for _, one := range s.Stuck {
			found[one.Kind] = one
		}
		if f := found[monitor.Overdue]; f.Count != 1 || f.ID != "late" || f.Oldest != 2*time.Minute || f.Group != "" {
			t.Errorf("overdue %+v", f)
		}
		if f := found[monitor.Unexpired]; f.Count != 1 || f.ID != "dead" || f.Group != "default" {
			t.Errorf("unexpired %+v", f)
		}
		if f := found[monitor.Stalled]; f.Count != 7 {
			t.Errorf("stalled %+v", f)
		}
		r.want(s.Health, monitor.Degraded, "consumers take none")
	})
}

func TestBadInput(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		for name, o := range map[string]monitor.Options{
			"nil worker": {Workers: []*worker.Worker{nil}},
			"interval":   {Interval: -1},
			"swapped":    {Limits: monitor.Limits{ErrorRate: monitor.Level[float64]{Degraded: 0.5, Unhealthy: 0.1}}},
			"negative":   {Limits: monitor.Limits{Overdue: -1}},
		} {
			if _, err := monitor.New(r.broker, o); !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%s: %v, want ErrInvalid", name, err)
			}
		}
		if _, err := monitor.New(nil, monitor.Options{}); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("nil broker: %v, want ErrInvalid", err)
		}
	})
}

// Dead letters, parse errors and the memory of the backend are judged, paused or not.
func TestDeadInvalidAndMemory(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		if err := r.EnsureGroup(t.Context(), "orders", "billing", driver.GroupOptions{}); err != nil {
			t.Fatal(err)
		}
		m := r.monitor(monitor.Options{})
		r.want(m.Look(t.Context()).Health, monitor.Healthy, "")
		for _, c := range []struct {
			show  func(*driver.TopicStats)
			usage driver.Usage
			want  monitor.Status
			text  string
		}{
			{func(s *driver.TopicStats) { s.Groups[0].Dead, s.Groups[0].Paused = 2, true }, driver.Usage{}, monitor.Degraded,
				"group billing of topic orders: it has 2 dead letters"},
			{func(s *driver.TopicStats) { s.Invalid = 3 }, driver.Usage{}, monitor.Degraded,
				"topic orders: 3 messages could not be decoded"},
			{nil, driver.Usage{Memory: 79, MemoryLimit: 100}, monitor.Healthy, ""},
			{nil, driver.Usage{Memory: 80, MemoryLimit: 100}, monitor.Degraded, "broker: 80 % of its memory is used"},
			{nil, driver.Usage{Memory: 96, MemoryLimit: 100}, monitor.Unhealthy, "broker: 96 % of its memory is used"},
			{nil, driver.Usage{Memory: 96}, monitor.Healthy, ""},
		} {
			r.show, r.usage = c.show, &c.usage
			r.want(m.Look(t.Context()).Health, c.want, c.text)
		}
		r.show = func(s *driver.TopicStats) { s.Groups[0].Dead, s.Invalid = 50, 7 }
		strict := monitor.Limits{Dead: monitor.Level[int64]{Degraded: 10, Unhealthy: 50},
			Invalid: monitor.Level[int64]{Degraded: 10}}
		h := r.monitor(monitor.Options{Limits: strict}).Look(t.Context()).Health
		r.want(h, monitor.Unhealthy, "50 dead letters")
		if len(h.Reasons) != 1 {
			t.Errorf("%v", h.Reasons)
		}
	})
}

// The group that a first publish made, and that no consumer knows of, is named as such.
func TestUnreadDefaultGroup(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		r.publish(3)
		w, stop := r.work(worker.Options{}, func(context.Context, *ferry.Delivery) error { return nil },
			worker.Group("billing"))
		m := r.monitor(monitor.Options{Workers: []*worker.Worker{w}})
		r.want(m.Look(t.Context()).Health, monitor.Degraded,
			"group default of topic orders: 3 messages wait and nothing consumes them: the first publish made this group, and "+
				"consumers use billing")
		stop()
		if h := m.Look(t.Context()).Health; strings.Contains(fmt.Sprint(h.Reasons), "consumers use") {
			t.Errorf("there are no other consumers, and it says %v", h.Reasons)
		}
	})
}

// Ferry's own topics are no queues of the program: what lies in them is not judged unless it is asked for.
func TestOwnTopicsAreLeftOut(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		m := &driver.Message{ID: "lease", OwnID: true, Topic: "ferry.schedules"}
		if _, err := r.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		s := r.monitor(monitor.Options{}).Look(t.Context())
		r.want(s.Health, monitor.Healthy, "")
		if len(s.Queues) != 0 {
			t.Errorf("%+v", s.Queues)
		}
		r.want(r.monitor(monitor.Options{Topics: []string{"ferry.schedules"}}).Look(t.Context()).Health, monitor.Unhealthy,
			"ferry.schedules")
	})
}

// newMemory returns an empty broker in memory.
func newMemory(t testing.TB, o memory.Options) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A topic that is asked for and does not exist is a reason, until it does.
func TestMissingTopic(t *testing.T) {
	virtual(t, func(t *testing.T, r *rig) {
		m := r.monitor(monitor.Options{Topics: []string{"orders", "ordres"},
			Limits: monitor.Limits{Age: monitor.Level[time.Duration]{Degraded: -1, Unhealthy: -1}}})
		h := m.Look(t.Context()).Health
		r.want(h, monitor.Degraded, "topic orders: it does not exist")
		r.want(h, monitor.Degraded, "topic ordres: it does not exist")
		r.publish(1)
		_, stop := r.work(worker.Options{}, func(context.Context, *ferry.Delivery) error { return nil })
		defer stop()
		if h = m.Look(t.Context()).Health; len(h.Reasons) != 1 || h.Reasons[0].Subject != "topic ordres" {
			t.Errorf("%+v", h)
		}
		r.away.Store(true)
		if h = m.Look(t.Context()).Health; len(h.Reasons) != 1 || h.Reasons[0].Subject != "broker" {
			t.Errorf("while the broker is away: %+v", h)
		}
		if _, err := monitor.New(r.broker, monitor.Options{Topics: []string{"no spaces"}}); !errors.Is(err,
			ferry.ErrInvalid) {
			t.Errorf("a name that no topic has: %v", err)
		}
	})
}
