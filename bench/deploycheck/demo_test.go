package deploycheck_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql/parser"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/spool"
	"github.com/ferrymq/ferry/telemetry/prom"
	"github.com/ferrymq/ferry/wecom"
	"github.com/ferrymq/ferry/worker"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(redistest.Main(m))
}

// metrics are the labels of each metric that exists, by the names that queries use.
type metrics map[string][]string

// check demands that an expression parses, and that the metrics it names exist with the labels it asks for.
func (known metrics) check(t *testing.T, where, expr string, used map[string]bool) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %s: %v", where, expr, err)
		return
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		labels, exists := known[s.Name]
		if !exists {
			t.Errorf("%s: there is no metric %s", where, s.Name)
		}
		used[base(s.Name)] = true
		for _, m := range s.LabelMatchers {
			if labels != nil && m.Name != "__name__" && m.Name != "instance" && !slices.Contains(labels, m.Name) {
				t.Errorf("%s: %s has no label %s", where, s.Name, m.Name)
			}
		}
		return nil
	})
}

// demo has everything happen that there are metrics for, once for all tests.
func demo(t *testing.T) metrics {
	t.Helper()
	all := demoOnce(t)
	out := metrics{}
	for name, labels := range all {
		out[name] = labels
	}
	return out
}

var (
	once sync.Once
	seen metrics
)

func demoOnce(t *testing.T) metrics {
	t.Helper()
	once.Do(func() { seen = run(t) })
	if seen == nil {
		t.Fatal("the demo failed")
	}
	return seen
}

func run(t *testing.T) metrics {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	m := must(prom.New(prom.Options{Partitions: true, Age: time.Nanosecond}))(t)
	store := guard.NewMemory(guard.MemoryOptions{})
	limit := must(guard.NewLimiter(store, guard.LimiterOptions{Hook: m.Guard(), Limits: []guard.Limit{
		{Name: "sender", Rule: guard.Rule{Limit: 1, Window: time.Hour, Penalty: guard.Penalty{After: 1}}}}}))(t)
	refuse := errors.New("no")
	hooks := m.Hooks()
	b := must(redisstream.Open(ctx, redisstream.Options{URL: redistest.Shared(t).URL(), Prefix: "check",
		Broker: ferry.Options{Hooks: hooks}}))(t)
	w := worker.New(b, worker.Options{MaxAttempts: 2, Retry: ferry.Delays(10 * time.Millisecond)})
	worker.HandleRaw(w, "orders", func(_ context.Context, d *ferry.Delivery) error {
		if string(d.Body) == "bad" {
			return refuse
		}
		return nil
	})
	breaker := must(guard.NewBreaker(guard.BreakerOptions{Name: "billing", Hook: m.Guard(), Failures: 1}))(t)
	worker.HandleRaw(w, "mails", func(context.Context, *ferry.Delivery) error { return refuse },
		worker.Use(limit.Middleware(), breaker.Middleware()))
	if err := b.Driver().EnsureTopic(ctx, "orders", ferry.TopicConfig{MaxMessages: 100}); err != nil {
		t.Fatal(err)
	}
	recoverer := must(deadletter.NewRecoverer(must(deadletter.New(b))(t), deadletter.RecovererOptions{}))(t)
	spooling := must(spool.New(ctx, newMemory(t, 1<<20), newMemory(t, 2<<20), spool.Options{}))(t)
	service := must(wecom.New(b, wecom.Config{Corp: "corp", Secret: "secret"}, wecom.Options{}))(t)
	if err := service.SetCursor(ctx, "kf", ""); err != nil {
		t.Fatal(err)
	}
	locks := new(cluster.LockMetrics)
	var all sync.WaitGroup
	all.Go(func() { _ = w.Run(ctx) })
	<-w.Ready()
	c := must(monitor.NewCollector(b, monitor.CollectorOptions{Partitions: true, Processes: cluster.Processes}))(t)
	err := m.Watch(prom.Sources{Workers: []*worker.Worker{w}, Collector: c, Recoverers: []*deadletter.Recoverer{recoverer},
		Spools: []*spool.Driver{spooling},
		Locks:  map[string]*cluster.LockMetrics{"import": locks}, Guards: store, Limits: []string{"sender"},
		WeCom: []*wecom.Pipeline{service}})
	if err != nil {
		t.Fatal(err)
	}
	lock := must(cluster.Acquire(ctx, b, "import", cluster.LockOptions{Metrics: locks}))(t)
	if err := lock.Release(ctx); err != nil {
		t.Error(err)
	}
	for _, body := range []string{"good", "bad"} {
		if _, err := b.Publish(ctx, &ferry.Message{Topic: "orders", Key: "ann", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Publish(ctx, &ferry.Message{Topic: "mails", Key: "ann", Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
	}
	more := make([]*ferry.Message, 300)
	for i := range more {
		more[i] = &ferry.Message{Topic: "orders", Delay: time.Hour}
	}
	if _, err := b.PublishBatch(ctx, more); !errors.Is(err, ferry.ErrFull) {
		t.Errorf("more than the bound: %v", err)
	}
	found := until(t, m)
	cancel()
	all.Wait()
	service.Close()
	_, _ = b.Close(context.WithoutCancel(ctx)), spooling.Close(context.WithoutCancel(ctx))
	return found
}

// until scrapes until everything that takes its time has been counted.
func until(t *testing.T, m *prom.Metrics) metrics {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	deadline := time.Now().Add(time.Minute)
	for {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := names(families)
		missing := slices.DeleteFunc([]string{"ferry_dead_letters_total", "ferry_redeliveries_total", "ferry_breaker_state",
			"ferry_limit_violations_total", "ferry_limit_penalties_total",
			"ferry_partition_processed_total", "ferry_consumer_lag_messages", "ferry_publish_errors_total",
			"ferry_topic_full_ratio"},
			func(name string) bool { _, ok := found[name]; return ok })
		if len(missing) == 0 {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("the demo never made %v", missing)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// names are what queries may say.
func names(families []*dto.MetricFamily) metrics {
	found := metrics{}
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		name := f.GetName()
		found[name] = labels
		if f.GetType() == dto.MetricType_HISTOGRAM || f.GetType() == dto.MetricType_SUMMARY {
			found[name+"_sum"], found[name+"_count"] = labels, labels
		}
		if f.GetType() == dto.MetricType_HISTOGRAM {
			found[name+"_bucket"] = append(slices.Clone(labels), "le")
		}
	}
	return found
}

func newMemory(t *testing.T, body int) *memory.Driver {
	t.Helper()
	return must(memory.New(t.Context(), memory.Options{MaxBody: body}))(t)
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
