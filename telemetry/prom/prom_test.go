package prom_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/telemetry/prom"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(redistest.Main(m))
}

// watched is a driver whose messages nobody may read.
type watched struct {
	driver.Driver
	t *testing.T
}

func (w *watched) Browse(context.Context, driver.Query) (driver.Page, error) {
	w.t.Error("a scrape reads messages")
	return driver.Page{}, nil
}

func newMetrics(t testing.TB, o prom.Options) *prom.Metrics {
	t.Helper()
	m, err := prom.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// gathered are metrics by name, and by their labels as "a=1,b=2".
func gathered(t testing.TB, m *prom.Metrics) map[string]map[string]*dto.Metric {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]*dto.Metric{}
	for _, f := range families {
		byLabels := map[string]*dto.Metric{}
		for _, one := range f.GetMetric() {
			var labels []string
			for _, l := range one.GetLabel() {
				if l.GetName() != "broker" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			byLabels[strings.Join(labels, ",")] = one
		}
		out[f.GetName()] = byLabels
	}
	return out
}

func number(m *dto.Metric) float64 { return m.GetCounter().GetValue() + m.GetGauge().GetValue() }

// demo has a worker succeed, fail, retry and give up, on a broker that is watched.
func demo(t *testing.T, m *prom.Metrics) {
	t.Helper()
	ctx := context.Background()
	d, err := memory.New(ctx, memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := ferry.New(&watched{d, t}, ferry.Options{Hooks: m.Hooks()})
	if err != nil {
		t.Fatal(err)
	}
	w := worker.New(b, worker.Options{Concurrency: 4, MaxAttempts: 2, Retry: ferry.Delays(time.Second)})
	worker.HandleRaw(w, "orders", func(_ context.Context, d *ferry.Delivery) error {
		time.Sleep(100 * time.Millisecond)
		switch string(d.Body) {
		case "bad":
			return errors.New("bad")
		case "panic":
			panic("at the disco")
		case "own":
			return worker.Dead("no_stock", nil)
		}
		return nil
	}, worker.Group("billing"))
	running, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.Run(running); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-done; _ = b.Close(ctx) })
	<-w.Ready()
	c, err := monitor.NewCollector(b, monitor.CollectorOptions{Options: monitor.Options{Workers: []*worker.Worker{w}}})
	if err != nil {
		t.Fatal(err)
	}
	locks := new(cluster.LockMetrics)
	if err := m.Watch(prom.Sources{Workers: []*worker.Worker{w}, Collector: c,
		Locks: map[string]*cluster.LockMetrics{"import": locks}}); err != nil {
		t.Fatal(err)
	}
	lock, err := cluster.Acquire(ctx, b, "import", cluster.LockOptions{Metrics: locks})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"a", "b", "c", "bad", "panic", "own"} {
		if _, err := ferry.Publish(ctx, b, "orders", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ferry.Publish(ctx, b, "orders", []byte("later"), ferry.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	if err := lock.Release(ctx); err != nil {
		t.Fatal(err)
	}
	hook := m.Guard()
	for _, e := range []guard.Event{
		{Kind: guard.EventLimited, Layer: "limit", Name: "sender", Key: "ann"},
		{Kind: guard.EventPenalized, Layer: "limit", Name: "sender", Key: "ann"},
		{Kind: guard.EventBusy, Layer: "concurrency", Name: "slots"},
		{Kind: guard.EventState, Layer: "breaker", Name: "billing", State: guard.StateOpen},
		{Kind: guard.EventAdmitted, Layer: "limit", Name: "sender"},
	} {
		hook(ctx, e)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, prom.Options{})
		demo(t, m)
		got := gathered(t, m)
		for name, want := range map[string]map[string]float64{
			"ferry_messages_published_total": {"topic=orders": 7},
			"ferry_messages_processed_total": {"group=billing,result=ack,topic=orders": 3,
				"group=billing,result=retry,topic=orders": 2, "group=billing,result=dead,topic=orders": 3},
			"ferry_messages_failed_total": {"group=billing,reason=error,topic=orders": 1,
				"group=billing,reason=no_stock,topic=orders": 1, "group=billing,reason=panic,topic=orders": 2},
			"ferry_dead_letters_total": {"group=billing,reason=no_stock,topic=orders": 1,
				"group=billing,reason=panic,topic=orders": 1, "group=billing,reason=max_attempts,topic=orders": 1},
			"ferry_redeliveries_total": {"cause=retry,group=billing,topic=orders": 2},
			"ferry_topic_messages": {"group=billing,state=dead,topic=orders": 3,
				"group=billing,state=ready,topic=orders": 0, "group=,state=delayed,topic=orders": 1},
			"ferry_group_messages_total": {"event=retried,group=billing,topic=orders": 2,
				"event=died,group=billing,topic=orders": 3, "event=acked,group=billing,topic=orders": 3},
			"ferry_consumers":              {"group=billing,topic=orders": 1},
			"ferry_handlers":               {"state=active": 0, "state=idle": 4},
			"ferry_up":                     {"": 1},
			"ferry_health":                 {"status=degraded": 1, "status=healthy": 0, "status=unhealthy": 0},
			"ferry_uptime_seconds":         {"": 5},
			"ferry_lock_acquired_total":    {"lock=import": 1},
			"ferry_limit_violations_total": {"limit=sender": 1},
			"ferry_limit_penalties_total":  {"limit=sender": 1},
			"ferry_guard_refused_total": {"kind=limited,layer=limit,name=sender": 1,
				"kind=busy,layer=concurrency,name=slots": 1},
			"ferry_breaker_state":                {"name=billing": 2},
			"ferry_breaker_transitions_total":    {"name=billing,to=open": 1},
			"ferry_folded_names":                 {"label=topic": 0},
			"ferry_emergency_writes_total":       {"group=billing,topic=orders": 0},
			"ferry_oldest_message_age_seconds":   {"group=billing,topic=orders": 0},
			"ferry_backend_memory_limit_bytes":   {"": 0},
			"ferry_dead_letters_recovered_total": nil,
		} {
			for labels, n := range want {
				if one := got[name][labels]; one == nil || number(one) != n {
					t.Errorf("%s{%s} is %v, want %v", name, labels, one, n)
				}
			}
		}
		hold := got["ferry_lock_hold_seconds"]["lock=import"].GetSummary()
		if hold.GetSampleCount() != 1 || hold.GetSampleSum() != 5 {
			t.Errorf("locks were held for %v", hold)
		}
		histograms(t, got["ferry_process_duration_seconds"]["group=billing,topic=orders"].GetHistogram())
	})
}

// histograms checks eight durations of 100 ms, classic and native.
func histograms(t *testing.T, h *dto.Histogram) {
	t.Helper()
	if h.GetSampleCount() != 8 || h.GetSampleSum() < 0.799 || h.GetSampleSum() > 0.801 || h.GetSchema() != 2 {
		t.Fatalf("%v", h)
	}
	for _, b := range h.GetBucket() {
		if want := map[bool]uint64{true: 8, false: 0}[b.GetUpperBound() > 0.1]; b.GetCumulativeCount() != want {
			t.Errorf("classic: %d are up to %v s", b.GetCumulativeCount(), b.GetUpperBound())
		}
	}
	if len(h.GetPositiveSpan()) != 1 || h.GetPositiveDelta()[0] != 8 {
		t.Fatalf("native: %v", h)
	}
	// Bucket i of schema 2 is from 2^((i-1)/4) to 2^(i/4): 0.1 is in bucket -13, of 0.088 to 0.105.
	if at := h.GetPositiveSpan()[0].GetOffset(); at != -13 {
		t.Errorf("native: 0.1 s is in bucket %d", at)
	}
}

func TestLint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, prom.Options{Partitions: true})
		demo(t, m)
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(m)
		problems, err := testutil.GatherAndLint(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

// TestSeriesAreBounded: whatever topics, groups and names there are, their series are not more than was said, nothing
// is lost, and the log says so once.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	m := newMetrics(t, prom.Options{MaxTopics: 50, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	published, hook := m.Hooks().Published, m.Guard()
	for i := range 10_000 {
		published(t.Context(), ferry.Event{Topic: fmt.Sprintf("tenant-%d", i), Duration: time.Millisecond})
		hook(t.Context(), guard.Event{Kind: guard.EventLimited, Layer: "limit", Name: fmt.Sprint("user-", i), Key: "k"})
	}
	got := gathered(t, m)
	total := 0.0
	for _, one := range got["ferry_messages_published_total"] {
		total += number(one)
	}
	if n := len(got["ferry_messages_published_total"]); n != 51 || total != 10_000 {
		t.Errorf("%d series count %v messages, want 51 and all", n, total)
	}
	if n := len(got["ferry_limit_violations_total"]); n > 101 {
		t.Errorf("%d limits are told apart", n)
	}
	if number(got["ferry_messages_published_total"]["topic=(other)"]) != 9950 ||
		number(got["ferry_folded_names"]["label=topic"]) != 50 {
		t.Errorf("folded: %v", got["ferry_folded_names"])
	}
	if n := strings.Count(log.String(), "label=topic"); n != 1 {
		t.Errorf("the log says so %d times:\n%s", n, &log)
	}
}

// TestBrokerIsAway: its figures are missing, the others are there.
func TestBrokerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMetrics(t, prom.Options{Age: time.Nanosecond})
		b, err := memory.Open(t.Context(), memory.Options{Broker: ferry.Options{Hooks: m.Hooks()}})
		if err != nil {
			t.Fatal(err)
		}
		c, err := monitor.NewCollector(b, monitor.CollectorOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(m.Watch(prom.Sources{Collector: c}), b.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if _, err := ferry.Publish(t.Context(), b, "orders", 1); err == nil {
			t.Fatal("published to a closed broker")
		}
		got := gathered(t, m)
		if number(got["ferry_up"][""]) != 0 || number(got["ferry_failures_total"][""]) != 1 ||
			got["ferry_build_info"] == nil || got["ferry_backend_memory_bytes"] != nil {
			t.Errorf("%v", got)
		}
	})
}

func TestErrorsHaveKinds(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, prom.Options{})
	for _, kind := range []error{ferry.ErrFull, ferry.ErrUnknown, ferry.ErrNotApplied, ferry.ErrTooLarge, ferry.ErrRefused,
		errors.New("secret text")} {
		m.Hooks().Published(t.Context(), ferry.Event{Topic: "orders", Err: driver.NewError(kind, "text", "", nil)})
	}
	got := gathered(t, m)["ferry_publish_errors_total"]
	for _, kind := range []string{"full", "unknown", "not_applied", "too_large", "refused", "other"} {
		if number(got["kind="+kind+",topic=orders"]) != 1 {
			t.Errorf("%s is counted %v times", kind, got["kind="+kind+",topic=orders"])
		}
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, prom.Options{Broker: "main"})
	m.Hooks().Published(t.Context(), ferry.Event{Topic: "orders", Duration: time.Millisecond})
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range []string{`ferry_messages_published_total{broker="main",topic="orders"} 1`,
		`ferry_publish_duration_seconds_bucket{broker="main",topic="orders",le="0.0009765625"} 0`, "go_goroutines",
		"process_cpu_seconds_total"} {
		if !strings.Contains(w.Body.String(), line) {
			t.Errorf("%q is not in\n%s", line, w.Body)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := prom.New(prom.Options{MaxTopics: -1}); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("a negative option: %v", err)
	}
	if err := newMetrics(t, prom.Options{}).Watch(
		prom.Sources{Workers: []*worker.Worker{nil}}); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("a nil worker: %v", err)
	}
}

// Publishes that are refused before they are sent are counted. A topic that cannot be does not become a label.
func TestRefusedPublishes(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, prom.Options{})
	b, err := memory.Open(t.Context(), memory.Options{MaxBody: 1, Broker: ferry.Options{Hooks: m.Hooks()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	for _, one := range []*ferry.Message{{Topic: "orders", Body: []byte("xx")}, {Topic: "\xff"}, {Topic: "no topic"}} {
		if _, err := b.Publish(t.Context(), one); err == nil {
			t.Errorf("%+v was published", one)
		}
	}
	failed := gathered(t, m)["ferry_publish_errors_total"]
	for labels, want := range map[string]float64{"kind=too_large,topic=orders": 1, "kind=invalid,topic=(other)": 2} {
		if got := failed[labels].GetCounter().GetValue(); got != want {
			t.Errorf("%s: %v, want %v of %v", labels, got, want, failed)
		}
	}
}

// Names that are no text, of limits or reasons, are one series as soon as they look alike: two of the same labels would
// fail the scrape.
func TestNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	m := newMetrics(t, prom.Options{})
	hook := m.Guard()
	for _, name := range []string{"\xff", "\xfe"} {
		hook(t.Context(), guard.Event{Kind: guard.EventLimited, Layer: "limit", Name: name})
	}
	if got := gathered(t, m)["ferry_limit_violations_total"]["limit=\ufffd"].GetCounter().GetValue(); got != 2 {
		t.Errorf("%v, want 2", got)
	}
}
