package alert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/ferrytest"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
	"github.com/ferrymq/ferry/worker"
)

// inbox is a channel that keeps what arrived.
type inbox struct {
	mu     sync.Mutex
	titles []string
	bodies []string
}

func (i *inbox) Limits() notify.Limits { return notify.Limits{} }

func (i *inbox) Send(_ context.Context, r notify.Rendered) (notify.Sent, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.titles, i.bodies = append(i.titles, r.Title), append(i.bodies, r.Body)
	return notify.Sent{}, nil
}

// want fails the test unless exactly these titles arrived since the last call.
func (i *inbox) want(t *testing.T, titles ...string) {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	if got, want := strings.Join(i.titles, ", "), strings.Join(titles, ", "); got != want {
		t.Errorf("%q arrived, not %q", got, want)
	}
	i.titles, i.bodies = nil, nil
}

// rig is a broker in virtual time with a hub, and a figure that the test sets.
type rig struct {
	*testing.T
	k     *ferrytest.Kit
	hub   *notify.Hub
	inbox *inbox

	mu   sync.Mutex
	leak float64
}

// set sets the figure active_processors.
func (r *rig) set(v float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leak = v
}

func (r *rig) source(context.Context) (map[string]float64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return map[string]float64{"active_processors": r.leak}, nil
}

// watch returns one that evaluates the rules.
func (r *rig) watch(o alert.Options) *alert.Watch {
	r.Helper()
	collector, err := monitor.NewCollector(r.k.Broker, monitor.CollectorOptions{})
	if err != nil {
		r.Fatal(err)
	}
	o.Hub, o.Collector, o.Sources = r.hub, collector, []alert.Source{r.source}
	o.Channels = map[string][]notify.Target{"email": {{Channel: "in", To: "ops"}}}
	w, err := alert.New(r.k.Broker, o)
	if err != nil {
		r.Fatal(err)
	}
	return w
}

func run(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		in := &inbox{}
		hub, err := notify.New(k.Broker, notify.Options{Channels: map[string]notify.Channel{"in": in}, Keep: 48 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		k.Start(hub)
		test(t, &rig{T: t, k: k, hub: hub, inbox: in})
	})
}

func leak(f, cooldown time.Duration) []alert.Rule {
	return []alert.Rule{{Name: "leak", When: "active_processors > threshold", Threshold: 10, For: f, Cooldown: cooldown,
		Text: "{active_processors:d} over {threshold:d}", Action: "restart it"}}
}

func TestForCooldownAndResolve(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.k.Start(r.watch(alert.Options{Rules: leak(time.Minute, 10*time.Minute)}))
		r.set(11)
		r.k.Advance(50 * time.Second)
		r.inbox.want(t)
		r.set(0) // too short
		r.k.Advance(20 * time.Second)
		r.set(12)
		r.k.Advance(80 * time.Second)
		if body := r.inbox.bodies; len(body) != 1 || body[0] != "12 over 10\nrestart it" {
			t.Errorf("the body is %q", body)
		}
		r.inbox.want(t, "[WARNING] leak")
		r.k.Advance(9 * time.Minute)
		r.inbox.want(t)
		r.k.Advance(2 * time.Minute) // a reminder
		r.inbox.want(t, "[WARNING] leak")
		r.set(0)
		r.k.Advance(20 * time.Second)
		r.inbox.want(t, "[RESOLVED] leak")
		r.set(12) // again within the cool-down
		r.k.Advance(5 * time.Minute)
		r.inbox.want(t)
		r.k.Advance(6 * time.Minute)
		r.inbox.want(t, "[WARNING] leak")
	})
}

func TestSilenceAndAcknowledge(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		r.k.Start(r.watch(alert.Options{Rules: leak(0, time.Minute)}))
		if _, err := alert.AddSilence(t.Context(), r.k.Broker, alert.Silence{Rule: "le*"}, 10*time.Minute); err != nil {
			t.Fatal(err)
		}
		r.set(11)
		r.k.Advance(9 * time.Minute)
		r.inbox.want(t)
		if found, err := alert.List(t.Context(), r.k.Broker); err != nil || len(found) != 1 ||
			found[0].Status != alert.Firing {
			t.Errorf("%+v, %v", found, err)
		}
		r.k.Advance(70 * time.Second) // the silence is over, and it still fires
		r.inbox.want(t, "[WARNING] leak")
		if err := alert.Acknowledge(t.Context(), r.k.Broker, "leak", "system", "li"); err != nil {
			t.Fatal(err)
		}
		r.k.Advance(time.Hour)
		r.inbox.want(t)
		if found, _ := alert.List(t.Context(), r.k.Broker); found[0].Acknowledged != "li" {
			t.Errorf("%+v", found)
		}
		r.set(0)
		r.k.Advance(20 * time.Second)
		r.inbox.want(t, "[RESOLVED] leak")
		if err := alert.Acknowledge(t.Context(), r.k.Broker, "leak", "system", "li"); err == nil {
			t.Error("what does not fire was acknowledged")
		}
		h, err := alert.History(t.Context(), r.k.Broker, 10)
		if err != nil || len(h) != 3 || h[0].What != "resolved" || h[1].What != "acknowledged" || h[2].What != "fired" {
			t.Errorf("the history is %+v, %v", h, err)
		}
	})
}

// Another process goes on where the leader ended: nothing is told twice, nothing is forgotten.
func TestChangeOfLeader(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		stop := r.start(alert.Options{Rules: leak(time.Minute, time.Hour)})
		r.set(11)
		r.k.Advance(70 * time.Second)
		r.inbox.want(t, "[WARNING] leak")
		r.k.Start(r.watch(alert.Options{Rules: leak(time.Minute, time.Hour)}))
		stop()
		r.k.Advance(30 * time.Minute)
		r.inbox.want(t)
		r.set(0)
		r.k.Advance(20 * time.Second)
		r.inbox.want(t, "[RESOLVED] leak")
	})
}

// The rule holds for each queue by itself.
func TestSubjects(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		rules := []alert.Rule{{Name: "deep", When: "queue_depth > threshold", Threshold: 2, Topics: []string{"a*"}}}
		r.k.Start(r.watch(alert.Options{Rules: rules}))
		for _, topic := range []string{"a1", "a2", "b1"} {
			for range 3 {
				if _, err := ferry.Publish(t.Context(), r.k.Broker, topic, "x"); err != nil {
					t.Fatal(err)
				}
			}
		}
		r.k.Advance(20 * time.Second)
		r.inbox.want(t, "[WARNING] deep", "[WARNING] deep")
		if err := r.k.Broker.Driver().DeleteTopic(t.Context(), "a1"); err != nil {
			t.Fatal(err)
		}
		r.k.Advance(20 * time.Second) // a subject that is gone is over
		r.inbox.want(t, "[RESOLVED] deep")
		found, err := alert.List(t.Context(), r.k.Broker)
		if err != nil || len(found) != 2 || found[1].Subject != "a2/default" || found[1].Status != alert.Firing {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// A leader that was lost after it queued a notice, and before it noted that, makes the next one queue it again, under
// the same id.
func TestNoticeThatIsOwedIsSentOnce(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		stop := r.start(alert.Options{Rules: leak(0, time.Hour)})
		r.set(11)
		r.k.Advance(20 * time.Second)
		r.inbox.want(t, "[WARNING] leak")
		stop()
		found, err := alert.List(t.Context(), r.k.Broker)
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		a := found[0] // as it was before it was noted
		a.Owed, a.Notices, a.Notified = alert.Firing, 0, time.Time{}
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		w := driver.Write{Name: "state/leak/system", Data: data}
		if err := r.k.Broker.Driver().KV().Apply(t.Context(), cluster.LeadBucket(alert.Duty), driver.KVOptions{},
			w)[0].Err; err != nil {
			t.Fatal(err)
		}
		r.k.Start(r.watch(alert.Options{Rules: leak(0, time.Hour)}))
		r.k.Advance(time.Minute)
		r.inbox.want(t)
		if found, _ := alert.List(t.Context(), r.k.Broker); found[0].Owed != "" || found[0].Notices != 1 {
			t.Errorf("%+v", found)
		}
	})
}

// What is known of a rule that another leader does not have is forgotten, and who was told is told so.
func TestRemovedRule(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		stop := r.start(alert.Options{Rules: leak(0, time.Hour)})
		r.set(11)
		r.k.Advance(20 * time.Second)
		r.inbox.want(t, "[WARNING] leak")
		stop()
		other := leak(0, time.Hour)
		other[0].Name, other[0].Threshold = "other", 100
		r.k.Start(r.watch(alert.Options{Rules: other}))
		r.k.Advance(20 * time.Second)
		r.inbox.want(t, "[RESOLVED] leak")
		if found, err := alert.List(t.Context(), r.k.Broker); err != nil || len(found) != 0 {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

func TestGroupingIsADigest(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		var rules []alert.Rule
		for i := range 20 {
			rules = append(rules, alert.Rule{Name: fmt.Sprintf("rule-%d", i), When: "active_processors > 1"})
		}
		r.k.Start(r.watch(alert.Options{Rules: rules, Group: &notify.Digest{Window: 30 * time.Second}}))
		r.set(2)
		r.k.Advance(time.Minute)
		r.inbox.want(t, "20 notifications")
	})
}

func TestHeartbeat(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		if _, err := alert.Alive(t.Context(), r.k.Broker); err == nil {
			t.Error("nobody evaluates, and it is alive")
		}
		beat := alert.Heartbeat{Targets: []notify.Target{{Channel: "in", To: "watchdog"}}}
		stop := r.start(alert.Options{Rules: leak(0, 0), Heartbeat: beat})
		r.k.Advance(150 * time.Second)
		r.inbox.want(t, "Alerts are evaluated", "Alerts are evaluated", "Alerts are evaluated")
		if _, err := alert.Alive(t.Context(), r.k.Broker); err != nil {
			t.Error(err)
		}
		stop()
		r.k.Advance(time.Minute)
		if _, err := alert.Alive(t.Context(), r.k.Broker); err == nil {
			t.Error("nobody evaluates any more, and it is alive")
		}
	})
}

// A user is blocked, and people are told; ten at once are an emergency.
func TestGuardEvents(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: alert.Builtin()})
		r.k.Start(w)
		hook := w.GuardHook()
		for range 3 {
			hook(t.Context(), guard.Event{Kind: guard.EventLimited, Name: "l", Key: "u0"})
		}
		for i := range 10 {
			for range 2 { // told once in a cool-down
				hook(t.Context(), guard.Event{Kind: guard.EventPenalized, Name: "l", Key: fmt.Sprintf("u%d", i), After: time.Hour})
			}
		}
		hook(t.Context(), guard.Event{Kind: guard.EventState, Name: "b/u1", State: guard.StateOpen})
		r.k.Advance(10 * time.Second)
		r.inbox.mu.Lock()
		text := strings.Join(r.inbox.titles, "\n") + strings.Join(r.inbox.bodies, "\n")
		r.inbox.mu.Unlock()
		for part, n := range map[string]int{"[CRITICAL] UserBlocked": 10, "[EMERGENCY] ManyUsersBlocked": 1,
			"[CRITICAL] UserCircuitBreakerOpen": 1, "user u0 was blocked for 1.0 h after 3 violations": 1} {
			if got := strings.Count(text, part); got != n {
				t.Errorf("%q arrived %d times, not %d", part, got, n)
			}
		}
	})
}

// The whole chain: a downstream fails, its breaker opens, and every channel of the rule is told.
func TestBreakerOpensAndEveryChannelIsTold(t *testing.T) {
	ferrytest.Run(t, func(t *testing.T, k *ferrytest.Kit) {
		inboxes := map[string]*inbox{"slack": {}, "email": {}, "sms": {}}
		channels, targets := map[string]notify.Channel{}, map[string][]notify.Target{}
		for name, in := range inboxes {
			channels[name], targets[name] = in, []notify.Target{{Channel: name, To: "ops"}}
		}
		hub, err := notify.New(k.Broker, notify.Options{Channels: channels})
		if err != nil {
			t.Fatal(err)
		}
		collector, err := monitor.NewCollector(k.Broker, monitor.CollectorOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, err := alert.New(k.Broker, alert.Options{Hub: hub, Collector: collector, Rules: alert.Builtin(),
			Channels: targets})
		if err != nil {
			t.Fatal(err)
		}
		breaker, err := guard.NewBreaker(guard.BreakerOptions{Name: "billing", Failures: 2, Hook: w.GuardHook()})
		if err != nil {
			t.Fatal(err)
		}
		orders := worker.New(k.Broker, worker.Options{})
		worker.Handle(orders, "orders", func(context.Context,
			*ferry.Msg[int]) error {
			return errors.New("connection refused")
		},
			worker.Use(breaker.Middleware()))
		k.Start(hub)
		k.Start(w)
		k.Start(orders)
		for i := range 2 {
			if _, err := ferry.Publish(t.Context(), k.Broker, "orders", i); err != nil {
				t.Fatal(err)
			}
		}
		k.Advance(time.Second)
		for name, in := range inboxes {
			in.mu.Lock()
			if body := strings.Join(in.bodies, ""); body != "the breaker billing is open" {
				t.Errorf("%s got %q", name, body)
			}
			in.mu.Unlock()
			in.want(t, "[CRITICAL] UserCircuitBreakerOpen")
		}
	})
}

func TestTestSend(t *testing.T) {
	run(t, func(t *testing.T, r *rig) {
		w := r.watch(alert.Options{Rules: leak(0, 0)})
		if _, err := w.Test(t.Context(), "leak"); err != nil {
			t.Error(err)
		}
		if _, err := w.Test(t.Context(), "none"); err == nil {
			t.Error("a rule that does not exist was tested")
		}
		r.k.Drain()
		r.inbox.want(t, "[TEST] leak")
	})
}
