package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/faulty"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/worker"
)

// run runs something until the test ends, or until the function it returns is called.
func run(t *testing.T, r interface {
	Run(ctx context.Context) error
}) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = r.Run(ctx)
	}()
	stop = func() error {
		cancel()
		<-done
		return err
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

func join(t *testing.T, b *ferry.Broker, o cluster.Options) *cluster.Member {
	t.Helper()
	m, err := cluster.Join(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func members(t *testing.T, b *ferry.Broker) []cluster.Info {
	t.Helper()
	all, err := cluster.Members(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func names(all []cluster.Info) string {
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, " ")
}

// A member is seen with what it does as long as it beats, and not after it left.
func TestMembers(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		w := worker.New(b, worker.Options{Concurrency: 8, Instance: "one"})
		worker.HandleRaw(w, "orders", func(ctx context.Context, _ *ferry.Delivery) error { <-ctx.Done(); return nil })
		m := join(t, b, cluster.Options{Name: "web-1", Version: "1.2.3", Address: "10.0.0.7:80",
			Labels: map[string]string{"zone": "a"}, Workers: []*worker.Worker{w}})
		stopWorker, stop := run(t, w), run(t, m)
		run(t, join(t, b, cluster.Options{Name: "web-2"}))
		for i := range 25 {
			if _, err := ferry.Publish(context.Background(), b, "orders", i, ferry.ID(fmt.Sprint("order-", i))); err != nil {
				t.Fatal(err)
			}
		}
		pause(10 * time.Second)
		all := members(t, b)
		if names(all) != "web-1 web-2" {
			t.Fatalf("members: %s", names(all))
		}
		i := all[0]
		if i.Version != "1.2.3" || i.Address != "10.0.0.7:80" || i.Labels["zone"] != "a" || i.Host == "" || i.PID == 0 ||
			i.Uptime != 9*time.Second || i.Health() != "ok" || i.Shared {
			t.Errorf("%+v", i)
		}
		if i.Silence != time.Second || !i.LastBeat.Equal(time.Now().Add(-time.Second)) {
			t.Errorf("the last beat was %v ago, at %v", i.Silence, i.LastBeat)
		}
		if len(i.Workers) != 1 || i.Workers[0].Concurrency != 8 || i.Workers[0].Running != 8 ||
			i.Workers[0].Handlers[0].Topic != "orders" || i.Workers[0].Handlers[0].Group != "default" {
			t.Errorf("workers: %+v", i.Workers)
		}
		if len(i.Running) != 8 || i.Running[0].ID != "order-0" || i.Running[0].For != 9*time.Second {
			t.Errorf("running: %+v", i.Running)
		}
		if all[1].Health() != "idle" {
			t.Errorf("a member without workers is %s", all[1].Health())
		}
		if err := errors.Join(stopWorker(), stop()); err != nil {
			t.Error(err)
		}
		if got := names(members(t, b)); got != "web-2" {
			t.Errorf("after web-1 left: %s", got)
		}
	})
}

// A member whose beats do not arrive is gone after three of them, and back with the next that does.
func TestMemberIsCutOff(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		run(t, join(t, b, cluster.Options{Name: "web-1"}))
		pause(10 * time.Second)
		f.Set(faulty.Write, faulty.Fail(ferry.ErrNotApplied))
		pause(7 * time.Second)
		if got := names(members(t, b)); got != "web-1" {
			t.Errorf("8 s after its last beat: %q", got)
		}
		pause(2 * time.Second)
		if got := names(members(t, b)); got != "" {
			t.Errorf("10 s after its last beat: %q", got)
		}
		f.Set(faulty.Write, nil)
		pause(3 * time.Second)
		if got := names(members(t, b)); got != "web-1" {
			t.Errorf("after the broker came back: %q", got)
		}
	})
}

// A process that was killed and started again has its name at once. Two that live are both shown, and warned of.
func TestMembersOfOneName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var warned warnings
		d, err := memory.New(context.Background(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, err := ferry.New(d, ferry.Options{Logger: slog.New(&warned)})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close(context.Background())
		process := faulty.New(d)
		killed, err := ferry.New(process, ferry.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		run(t, join(t, killed, cluster.Options{Name: "web-1"}))
		pause(4 * time.Second)
		process.Set(faulty.Write, faulty.Fail(ferry.ErrNotApplied))
		second := join(t, b, cluster.Options{Name: "web-1"})
		run(t, second)
		synctest.Wait()
		all := members(t, b)
		if len(all) != 1 || all[0].Uptime != 0 || all[0].Shared || all[0].Member() != "web-1" {
			t.Errorf("after the restart: %+v", all)
		}
		run(t, join(t, b, cluster.Options{Name: "web-1"}))
		pause(4 * time.Second)
		all = members(t, b)
		if len(all) != 2 || !all[0].Shared || !all[1].Shared || all[0].Member() == all[1].Member() {
			t.Errorf("two that live: %+v", all)
		}
		if n := warned.count("another member has the same name: give each its own"); n == 0 {
			t.Error("nobody was warned")
		}
		if err := cluster.Tell(context.Background(), b, "web-1",
			cluster.Command{Do: cluster.Quiet}); !errors.Is(err, ferry.ErrConflict) ||
			!strings.Contains(err.Error(), all[0].Member()) {
			t.Errorf("Tell to a name that two have: %v", err)
		}
	})
}

// warnings collects what is logged.
type warnings struct {
	slog.Handler
	mu   sync.Mutex
	seen []string
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, r.Message)
	return nil
}

func (w *warnings) count(message string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.seen {
		if s == message {
			n++
		}
	}
	return n
}

// However much there is to tell, a beat fits into a value.
func TestBeatIsBounded(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		w := worker.New(b, worker.Options{Concurrency: 8})
		for i := range 1000 {
			worker.HandleRaw(w, fmt.Sprintf("topic-%0100d", i), func(context.Context, *ferry.Delivery) error { return nil })
		}
		m := join(t, b, cluster.Options{Name: "web-1", Workers: []*worker.Worker{w}})
		stopWorker, stop := run(t, w), run(t, m)
		pause(4 * time.Second)
		all := members(t, b)
		if len(all) != 1 || len(all[0].Workers[0].Handlers)+all[0].Workers[0].Omitted != 1000 ||
			len(all[0].Workers[0].Handlers) < 50 {
			t.Errorf("%d members", len(all))
		}
		if err := errors.Join(stopWorker(), stop()); err != nil {
			t.Error(err)
		}
	})
}

func TestJoinIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		for name, o := range map[string]cluster.Options{
			"a bad name":     {Name: "a/b"},
			"a long name":    {Name: strings.Repeat("x", 129)},
			"a short beat":   {Beat: time.Millisecond},
			"a long address": {Address: strings.Repeat("x", 300)},
			"large labels":   {Labels: map[string]string{"a": strings.Repeat("x", 9000)}},
			"a nil worker":   {Workers: []*worker.Worker{nil}},
		} {
			if _, err := cluster.Join(b, o); !errors.Is(err, ferry.ErrInvalid) || !strings.Contains(err.Error(), "hint") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := cluster.Join(nil, cluster.Options{}); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("no broker: %v", err)
		}
		m := join(t, b, cluster.Options{})
		stop := run(t, m)
		pause(time.Second)
		if err := m.Run(context.Background()); !errors.Is(err, ferry.ErrInvalid) {
			t.Errorf("a second Run: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		f.Set(faulty.Write, faulty.Fail(ferry.ErrUnsupported))
		if err := join(t, b, cluster.Options{}).Run(context.Background()); !errors.Is(err, ferry.ErrUnsupported) {
			t.Errorf("a broker without values: %v", err)
		}
	})
}

// Processes tells of all members what their handlers did, so that it can be added up.
func TestProcesses(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		for i := range 2 {
			w := worker.New(b, worker.Options{Concurrency: 1})
			worker.HandleRaw(w, "orders", func(context.Context, *ferry.Delivery) error { time.Sleep(time.Second); return nil })
			run(t, w)
			tell := func() map[string]float64 { return map[string]float64{"degraded_messages": 7, "none": math.NaN()} }
			run(t, join(t, b, cluster.Options{Name: fmt.Sprint("web-", i), Workers: []*worker.Worker{w}, Figures: tell}))
		}
		for i := range 8 {
			if _, err := ferry.Publish(context.Background(), b, "orders", i); err != nil {
				t.Fatal(err)
			}
		}
		pause(10 * time.Second)
		c, err := monitor.NewCollector(b, monitor.CollectorOptions{Processes: cluster.Processes})
		if err != nil {
			t.Fatal(err)
		}
		f := c.Collect(context.Background())
		if f.Err != nil || len(f.Processes) != 2 || f.Processes[0].Name != "web-0" || f.Processes[0].Uses.Memory == 0 ||
			f.Processes[1].Uptime != 9*time.Second {
			t.Fatalf("%+v", f)
		}
		if told := f.Processes[1].Figures; len(told) != 3 || told["degraded_messages"] != 7 ||
			told[monitor.EmergencyWrites] != 0 {
			t.Errorf("it tells %v", told)
		}
		h := f.Total
		if h.Handled != 8 || h.Latencies.Count() != 8 || h.Latency().P50 < 850*time.Millisecond ||
			h.Latency().Max != time.Second || h.Waits.Count() != 8 {
			t.Errorf("%+v", h)
		}
		if load := cluster.LoadOf(members(t, b), "orders", "default"); load.Instances != 2 ||
			load.HandlerTime != time.Second || load.CPU < 0 || load.CPU > 1 {
			t.Errorf("%+v", load)
		}
	})
}
