package alert_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/spool"
)

// server is a watch as that of ferry serve: it has no part of a program, and the members tell it theirs.
func (r *rig) server(o alert.Options, names ...string) *alert.Watch {
	r.Helper()
	collector, err := monitor.NewCollector(r.k.Broker, monitor.CollectorOptions{Processes: cluster.Processes})
	if err != nil {
		r.Fatal(err)
	}
	o.Hub, o.Collector = r.hub, collector
	o.Channels = map[string][]notify.Target{"email": {{Channel: "in", To: "ops"}}}
	for _, rule := range alert.Builtin() {
		if slices.Contains(names, rule.Name) {
			o.Rules = append(o.Rules, rule)
		}
	}
	w, err := alert.New(r.k.Broker, o)
	if err != nil {
		r.Fatal(err)
	}
	return w
}

// told are the figures of a member, which the test sets.
type told struct {
	mu      sync.Mutex
	figures map[string]float64
}

func (m *told) set(figures map[string]float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.figures = figures
}

func (m *told) get() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.figures
}

// member starts one that tells figures.
func (r *rig) member(name string) *told {
	r.Helper()
	figures := &told{}
	m, err := cluster.Join(r.k.Broker, cluster.Options{Name: name, Figures: figures.get})
	if err != nil {
		r.Fatal(err)
	}
	r.k.Start(m)
	return figures
}

// TestMembersTellOfSpools: the built-in rules over spools fire for what members tell, and resolve.
func TestMembersTellOfSpools(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.k.Start(r.server(alert.Options{}, "KafkaProducerDegraded", "KafkaProducerDown"))
		one, other := r.member("one"), r.member("other")
		one.set(map[string]float64{"degraded_messages": 6, "kafka_failures_total": 90})
		other.set(map[string]float64{"degraded_messages": 6, "kafka_failures_total": 90})
		r.k.Advance(90 * time.Second)
		if !strings.Contains(strings.Join(r.inbox.bodies, ""), "12 messages wait") {
			t.Errorf("%q", r.inbox.bodies)
		}
		r.inbox.want(t, "[PAGE] KafkaProducerDegraded")
		one.set(map[string]float64{"degraded_messages": 0, "kafka_failures_total": 90})
		r.k.Advance(time.Minute)
		r.inbox.want(t, "[RESOLVED] KafkaProducerDegraded")
		for i := range 5 { // it goes on failing for longer than the rule's time
			one.set(map[string]float64{"kafka_failures_total": float64(90 + 50*i)})
			r.k.Advance(time.Minute)
		}
		r.inbox.want(t, "[CRITICAL] KafkaProducerDown")
		r.k.Advance(10 * time.Minute) // the counts stand still
		r.inbox.want(t, "[RESOLVED] KafkaProducerDown")
	})
}

// TestIncreasesOfAnHour: what members count is told by the hour, and is over an hour later. All that a member counted
// since it started counts, whenever the leader first saw it; a restart of it takes nothing away.
func TestIncreasesOfAnHour(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		one := r.member("one")
		one.set(map[string]float64{"rate_limit_violations_total": 101})
		r.k.Advance(time.Minute)
		r.k.Start(r.server(alert.Options{}, "rate_limit_violations_total"))
		r.k.Advance(time.Minute)
		r.inbox.want(t, "[WARNING] rate_limit_violations_total")
		r.k.Advance(time.Hour)
		r.inbox.want(t, "[RESOLVED] rate_limit_violations_total")
	})
}

// failing is a store that can be made to fail.
type failing struct {
	guard.Store
	mu  sync.Mutex
	err error
}

func (f *failing) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failing) Reports(ctx context.Context) ([]guard.BreakerStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	return f.Store.Reports(ctx)
}

// TestBreakersAndBlockedKeys: a breaker that a process reports as open fires by its name and resolves when it is
// closed; a store that does not answer resolves nothing. Blocked keys are counted.
func TestBreakersAndBlockedKeys(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		guards := &failing{Store: guard.NewMemory(guard.MemoryOptions{})}
		report := func(state guard.State) {
			t.Helper()
			all := []guard.BreakerStatus{{Name: "billing", State: state}, {Name: "mail", State: guard.StateClosed}}
			if _, err := guards.Report(t.Context(), "one", all); err != nil {
				t.Fatal(err)
			}
		}
		blocked := alert.Rule{Name: "blocked", When: "blocked_users_current > threshold", Threshold: 1}
		r.k.Start(r.server(alert.Options{Guards: guards, Rules: []alert.Rule{blocked}}, "breaker open"))
		report(guard.StateClosed)
		r.k.Advance(10 * time.Second)
		r.inbox.want(t)
		report(guard.StateOpen)
		r.k.Advance(10 * time.Second)
		if got := r.inbox.bodies; len(got) != 1 || got[0] != "the breaker billing is open in 1 processes" {
			t.Errorf("%q", got)
		}
		r.inbox.want(t, "[CRITICAL] breaker open")
		guards.fail(errors.New("it does not answer"))
		r.k.Advance(20 * time.Second)
		r.inbox.want(t)
		guards.fail(nil)
		report(guard.StateHalfOpen)
		r.k.Advance(10 * time.Second)
		r.inbox.want(t, "[RESOLVED] breaker open")
		for _, key := range []string{"a", "b"} {
			block := store.Change{Actor: "li", Reason: "noise", Action: guard.ActionBlock, Limit: "sender", Key: key}
			if err := guards.Change(t.Context(), block); err != nil {
				t.Fatal(err)
			}
		}
		r.k.Advance(10 * time.Second)
		r.inbox.want(t, "[WARNING] blocked")
	})
}

// TestHostileBreakers: keys of users are in the names of breakers. Whatever they are, people are told of them, and of
// what comes after them.
func TestHostileBreakers(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		guards := guard.NewMemory(guard.MemoryOptions{})
		all := []guard.BreakerStatus{{Name: "a/\x00\n\xff", State: guard.StateOpen}, {Name: "z", State: guard.StateOpen},
			{Name: "b/" + strings.Repeat("长", 400), State: guard.StateOpen}, {Name: "a/?\n\xff", State: guard.StateOpen}}
		if _, err := guards.Report(t.Context(), "one", all); err != nil {
			t.Fatal(err)
		}
		rule := alert.Rule{Name: strings.Repeat("r", 120), When: "breaker_open > 0", Text: "{breaker}"}
		r.k.Start(r.server(alert.Options{Guards: guards, Rules: []alert.Rule{rule}}))
		r.k.Advance(20 * time.Second)
		r.inbox.mu.Lock()
		defer r.inbox.mu.Unlock()
		if n := len(r.inbox.titles); n != len(all) || !slices.Contains(r.inbox.bodies, "z") {
			t.Errorf("%d arrived: %q", n, r.inbox.bodies)
		}
		found, err := alert.List(t.Context(), r.k.Broker)
		if err != nil || len(found) != len(all) {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// TestRecoveryStopped: that nobody recovers dead letters is told where somebody once did, and by another leader too.
func TestRecoveryStopped(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		evaluate := func() (end func()) {
			w := r.server(alert.Options{}, "DLQ recovery stopped")
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = w.Run(ctx) })
			return func() { stop(); running.Wait() }
		}
		end := evaluate()
		r.k.Advance(2 * time.Minute)
		r.inbox.want(t) // there was never any
		var recovering sync.WaitGroup
		recovering.Go(func() {
			_ = cluster.Lead(ctx, r.k.Broker, deadletter.Duty, func(ctx context.Context, _ *cluster.Lock) error {
				<-ctx.Done()
				return nil
			})
		})
		r.k.Advance(time.Minute)
		end()
		stop()
		recovering.Wait()
		defer evaluate()()
		r.k.Advance(2 * time.Minute)
		r.inbox.want(t, "[CRITICAL] DLQ recovery stopped")
	})
}

// TestUnjudgedRulesAreTold: a rule whose figures nobody tells is named by Alive and once in the log.
func TestUnjudgedRulesAreTold(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var log bytes.Buffer
		o := alert.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		r.k.Start(r.server(o, "KafkaProducerDegraded", "breaker open", "queue depth"))
		r.k.Advance(5 * time.Minute)
		beat, err := alert.Alive(t.Context(), r.k.Broker)
		if err != nil || strings.Join(beat.Unjudged, ",") != "KafkaProducerDegraded,breaker open" ||
			strings.Join(beat.Missing, ",") != "breaker_open,degraded_messages" {
			t.Errorf("%+v, %v", beat, err)
		}
		if n := strings.Count(log.String(), "rules cannot fire"); n != 1 {
			t.Errorf("it was said %d times:\n%s", n, log.String())
		}
		r.member("one").set(map[string]float64{"degraded_messages": 0})
		r.k.Advance(10 * time.Second)
		if beat, err := alert.Alive(t.Context(), r.k.Broker); err != nil || len(beat.Unjudged) != 1 {
			t.Errorf("after a member told it: %+v, %v", beat, err)
		}
	})
}

// TestPartsTell: what a process has is told by the names that rules use.
func TestPartsTell(t *testing.T) {
	t.Parallel()
	var stores [2]driver.Driver
	for i, body := range []int{1 << 20, 2 << 20} { // the local store has to take more
		d, err := memory.New(t.Context(), memory.Options{MaxBody: body})
		if err != nil {
			t.Fatal(err)
		}
		stores[i] = d
	}
	spooled, err := spool.New(t.Context(), stores[0], stores[1], spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := ferry.New(spooled, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	rule := guard.Rule{Limit: 1, Window: time.Hour, Penalty: guard.Penalty{After: 2}}
	limiter, err := guard.NewLimiter(guard.NewMemory(guard.MemoryOptions{}),
		guard.LimiterOptions{Limits: []guard.Limit{{Name: "sender", Rule: rule}}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // one passes, the third is blocked for it, and so is the fourth
		_ = limiter.Allow(t.Context(), &ferry.Message{ID: fmt.Sprint(i), Topic: "t", Key: "u"})
	}
	got := alert.Parts{Broker: b, Guards: []alert.Counter{limiter}}.Figures()
	for name, want := range map[string]float64{"degraded_messages": 0, "kafka_failures_total": 0,
		"rate_limit_violations_total": 2, "users_blocked_total": 1, "messages_denied_total": 3} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v, %v, not %v", name, v, ok, want)
		}
	}
}

// TestEventsOnly: a process that leaves conditions to others does not evaluate, and tells of its events.
func TestEventsOnly(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: alert.Builtin(), EventsOnly: true})
		r.k.Start(w)
		w.GuardHook()(t.Context(), guard.Event{Kind: guard.EventState, Name: "billing", State: guard.StateOpen})
		r.k.Advance(time.Minute)
		r.inbox.want(t, "[CRITICAL] UserCircuitBreakerOpen")
		if _, err := alert.Alive(t.Context(), r.k.Broker); err == nil {
			t.Error("it evaluates")
		}
	})
}
