package alert

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/expr-lang/expr/vm"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/monitor"
	"github.com/ferrymq/ferry/notify"
)

// Source tells figures that the monitor does not know: those of a spool, of guards, of a recovery. See Parts.
type Source func(ctx context.Context) (map[string]float64, error)

// Options of a Watch. Hub, Rules, Collector and Channels are needed.
type Options struct {
	Hub   *notify.Hub
	Rules []Rule
	// Collector tells the figures.
	Collector *monitor.Collector
	// Channels are where notices go, by the names that rules use.
	Channels map[string][]notify.Target
	// Sources tell figures of this process: those of Parts, for example. Other processes tell theirs as members.
	Sources []Source
	// Guards is the store that the guards of workers share: rules can be about keys that it blocks, and about breakers.
	Guards guard.Store
	// EventsOnly leaves conditions to other processes, a server for example: Run tells of events only, and needs no
	// Collector.
	EventsOnly bool
	// Silences keep notices back beside those of AddSilence: until their time, or always.
	Silences []Silence
	// Every is the time between two looks. Defaults to 10 seconds.
	Every time.Duration
	// Group collects notices to one destination. Defaults to none: each is sent by itself.
	Group *notify.Digest
	// Heartbeat is sent as long as somebody evaluates, to a service that calls people when it stops.
	Heartbeat Heartbeat
	// Logger defaults to that of the broker.
	Logger *slog.Logger
}

// Watch evaluates rules.
type Watch struct {
	broker   *ferry.Broker
	o        Options // all but what settings have
	settings atomic.Pointer[settings]
	rules    atomic.Pointer[ruleSet]
	log      *slog.Logger
	events   chan event
}

// New returns a watch, or says what is wrong with a rule.
func New(b *ferry.Broker, o Options) (*Watch, error) {
	if b == nil || o.Hub == nil || o.Collector == nil && !o.EventsOnly {
		return nil, driver.NewError(ferry.ErrInvalid, "alerts need a broker, a hub and a collector", "give all three", nil)
	}
	s, err := newSettings(o.Hub, o)
	if err != nil {
		return nil, err
	}
	if o.Every <= 0 {
		o.Every = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = b.Logger()
	}
	w := &Watch{broker: b, o: o, log: o.Logger, events: make(chan event, maxEvents)}
	w.settings.Store(s)
	w.rules.Store(&ruleSet{all: s.rules, settings: s})
	return w, nil
}

// targets are where notices of a rule go.
func targets(r *compiled, channels map[string][]notify.Target) []notify.Target {
	names := r.Channels
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(channels))
	}
	var found []notify.Target
	for _, name := range names {
		for _, t := range channels[name] {
			if !slices.ContainsFunc(found, func(o notify.Target) bool { return o.Channel == t.Channel && o.To == t.To }) {
				found = append(found, t)
			}
		}
	}
	return found
}

// Run evaluates whenever this process leads, and tells of events of this process, until ctx ends. All processes that
// evaluate need the same rules: what is known of other rules the leader forgets.
func (w *Watch) Run(ctx context.Context) error {
	if w.o.EventsOnly {
		w.tellEvents(ctx)
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.tellEvents(ctx)
	}()
	defer func() { stop(); <-done }()
	return cluster.Lead(ctx, w.broker, Duty, w.lead)
}

// round is what the leader knows.
type round struct {
	*Watch
	store    store
	alerts   map[alertKey]*Alert
	counters *counters
	vm       vm.VM
	beat     time.Time // of the last heartbeat
	began    time.Time
	warned   bool // that rules cannot fire
}

func (w *Watch) lead(ctx context.Context, l *cluster.Lock) error {
	r := &round{Watch: w, store: store{w.broker.Driver().KV(), l.Fence()}, counters: newCounters(),
		alerts: map[alertKey]*Alert{}, began: time.Now()}
	known, err := List(ctx, w.broker)
	if err != nil {
		return lost(ctx, err)
	}
	for i := range known {
		known[i].Acknowledged = ""
		r.alerts[known[i].key()] = &known[i]
	}
	tick := time.NewTicker(w.o.Every)
	defer tick.Stop()
	for {
		if err := r.look(ctx); err != nil {
			if errors.Is(err, ferry.ErrLeaseLost) || ctx.Err() != nil {
				return lost(ctx, err)
			}
			w.log.WarnContext(ctx, "alerts were not evaluated; it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lost is why the lead ended: a stop is no error.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// look evaluates all rules once, and sends what is owed.
func (r *round) look(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, max(r.o.Every, time.Second))
	defer cancel()
	rules, err := r.refresh(limited)
	if err != nil {
		return err
	}
	f := r.o.Collector.Collect(limited)
	quiet, err := r.Silences(limited)
	if err != nil {
		return err
	}
	acks, err := acknowledged(limited, r.store.kv)
	if err != nil {
		return err
	}
	g, errGuards := askGuards(limited, r.o.Guards)
	system, errRecovery := r.system(limited, f, g)
	if err := errors.Join(errGuards, errRecovery); err != nil {
		r.log.WarnContext(ctx, "rules over guards or the recovery were not evaluated; it is tried again", "error", err)
	}
	j := &judgement{round: r, subjects: byLevel(subjectsOf(f, system, g, r.counters)), quiet: quiet, acks: acks,
		now: time.Now(), seen: map[alertKey]bool{}}
	if err := j.judge(ctx, rules, f.Err != nil || errGuards != nil); err != nil {
		return err
	}
	beat := Beat{At: f.At, Every: r.o.Every, Rules: len(rules.all)}
	beat.Unjudged, beat.Missing = unjudged(rules, system, r.o.Guards != nil)
	r.warnUnjudged(ctx, beat)
	return r.heartbeat(ctx, beat)
}

// membersTell is how long a new leader gives the others to tell their figures.
const membersTell = time.Minute

// warnUnjudged says once which rules cannot fire.
func (r *round) warnUnjudged(ctx context.Context, b Beat) {
	if r.warned || len(b.Unjudged) == 0 || b.At.Sub(r.began) < membersTell {
		return
	}
	r.warned = true
	r.log.WarnContext(ctx, "rules cannot fire: nobody tells their figures; see docs/alerts.md", "rules", b.Unjudged,
		"figures", b.Missing)
}

// system are the values that belong to no topic: what the monitor measured, and what processes, sources, the guard
// store and the recovery tell.
func (r *round) system(ctx context.Context, f monitor.Figures, g *guarded) (map[string]any, error) {
	values := systemValues(f)
	for name, v := range r.counters.told(f, r.extra(ctx)) {
		values[name] = v
	}
	if g != nil {
		values["blocked_users_current"] = g.blocked
	}
	n, known, err := r.recoveryLeaders(ctx)
	if known {
		values["dlq_recovery_leaders"] = n
	}
	return values, err
}

// extra asks the sources. One that fails leaves its figures unknown.
func (r *round) extra(ctx context.Context) map[string]float64 {
	known := map[string]float64{}
	for _, source := range r.o.Sources {
		values, err := source(ctx)
		if err != nil {
			r.log.WarnContext(ctx, "a source of figures failed", "error", err)
			continue
		}
		maps.Copy(known, values)
	}
	return known
}

// settle ends an alert whose subject or rule is gone, and forgets one that was over long ago.
func (r *round) settle(ctx context.Context, rule *compiled, a *Alert, now time.Time) error {
	if rule == nil {
		return r.retire(ctx, a, now)
	}
	if a.Status == Resolved && a.Owed == "" {
		if now.Sub(a.Ended) > a.remembered(rule) {
			delete(r.alerts, a.key())
		}
		return nil
	}
	if err := r.payOwed(ctx, rule, a); err != nil {
		return err
	}
	next := a.end(now)
	if rule.Disabled && a.Status == Firing {
		next.EndedBy = "the rule was disabled"
	}
	return r.change(ctx, rule, a, next)
}

// retire ends an alert whose rule was removed. It is forgotten once who was told of it is told so.
func (r *round) retire(ctx context.Context, a *Alert, now time.Time) error {
	rule := r.standIn(a)
	if err := r.payOwed(ctx, rule, a); err != nil {
		return err
	}
	next := a.end(now)
	if a.Status == Firing {
		next.EndedBy = "the rule was removed"
	}
	if err := r.change(ctx, rule, a, next); err != nil || a.Owed != "" {
		return err
	}
	delete(r.alerts, a.key())
	return r.store.remove(ctx, a)
}

// standIn is a rule in place of one that was removed. If its channels are removed too, all are told.
func (r *round) standIn(a *Alert) *compiled {
	c := &compiled{Rule: Rule{Name: a.Rule, Cooldown: defaultCooldown, Channels: a.Channels}}
	if len(targets(c, r.settings.Load().channels)) == 0 {
		c.Channels = nil
	}
	return c
}

// step brings one alert up to date.
func (r *round) step(ctx context.Context, rule *compiled, s *subject, holds, quiet, acked bool, now time.Time) error {
	a := r.alerts[alertKey{rule.Name, s.name}]
	if a == nil {
		a = &Alert{Rule: rule.Name, Subject: s.name, Severity: rule.Severity}
	}
	if !holds {
		if err := r.payOwed(ctx, rule, a); err != nil {
			return err
		}
	}
	next := a.next(rule, holds, quiet, acked, now)
	if next.Owed != "" || next.Status != a.Status {
		next.Text = r.text(rule, s)
	}
	return r.change(ctx, rule, a, next)
}

// change writes what is new, then sends what is owed.
func (r *round) change(ctx context.Context, rule *compiled, a *Alert, next Alert) error {
	same := next.equal(*a)
	if same && a.Owed == "" {
		return nil
	}
	if !same {
		if err := r.store.put(ctx, &next, rule); err != nil {
			return err
		}
		r.enter(ctx, a, &next)
		*a = next
		r.alerts[a.key()] = a
	}
	if a.Status == Resolved && a.Fired.IsZero() {
		delete(r.alerts, a.key())
	}
	if a.Owed == "" {
		return nil
	}
	return r.pay(ctx, rule, a)
}

// enter notes a change in the history, which is for people: that it fails changes nothing.
func (r *round) enter(ctx context.Context, before, now *Alert) {
	if before.Status == now.Status || now.Status == Pending || now.Fired.IsZero() {
		return
	}
	if now.Status == Resolved {
		r.store.kv.Apply(ctx, bucket, driver.KVOptions{}, driver.Write{Name: ackName(now.Rule, now.Subject), Delete: true})
	}
	if now.Entered.Before(now.Fired) { // it came again within its cool-down
		return
	}
	what := map[Status]string{Firing: "fired", Resolved: "resolved"}[now.Status]
	err := record(ctx, r.store.kv, Entry{At: time.Now(), Rule: now.Rule, Subject: now.Subject, Severity: now.Severity,
		What: what, Text: now.Text})
	if err != nil {
		r.log.WarnContext(ctx, "the history of alerts has a gap", "error", err)
	}
}

// payOwed queues what is owed of an alert that is about to end. A leader that was lost may have queued it already: who
// was told is then told that it is over.
func (r *round) payOwed(ctx context.Context, rule *compiled, a *Alert) error {
	if a.Status != Firing || a.Owed == "" {
		return nil
	}
	return r.pay(ctx, rule, a)
}

// pay queues the notice that is owed, then notes that. Whoever leads next and finds it owed queues it under the same
// id.
func (r *round) pay(ctx context.Context, rule *compiled, a *Alert) error {
	if err := r.send(ctx, rule, a); err != nil {
		r.log.ErrorContext(ctx, "a notice was not queued; it is tried again", "rule", a.Rule, "subject", a.Subject, "error",
			err)
		return nil
	}
	next := *a
	next.Notified, next.Owed = time.Now(), ""
	next.Notices++
	if err := r.store.put(ctx, &next, rule); err != nil {
		return err
	}
	*a = next
	return nil
}
