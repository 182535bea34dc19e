package guard

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/worker"
)

// Limit is one limit: by what messages are counted, and how many may pass.
type Limit struct {
	// Name is what the store, the audit list and the command line call it.
	Name string
	// Key says by what messages are counted; Template says the same as a text, "{topic}/{header.tenant}" for example.
	// Defaults to the message's key.
	Key      KeyFunc
	Template string
	// Rule holds for keys of no other group.
	Rule Rule
	// Groups have rules of their own: "vip", "suspicious". Group says to which one a key belongs; "" is none. It is asked
	// for every message, so that changes hold at once: it must be quick.
	Groups map[string]Rule
	Group  func(ctx context.Context, key string) string
}

// LimiterOptions of a Limiter.
type LimiterOptions struct {
	// Limits must all admit a message; one that is refused counts in none of them.
	Limits []Limit
	// OnLimited is what becomes of a message over its limit, and OnBlocked of one whose key is blocked.
	// Default to Park; OnBlocked to OnLimited if that is set.
	OnLimited, OnBlocked Policy
	// FailOpen lets messages pass while the store cannot be reached. Otherwise they wait.
	FailOpen bool
	// MaxPark is how long a message is parked at most before it is looked at again. Defaults to DefaultMaxPark.
	MaxPark time.Duration
	Hook    Hook
}

// Limiter admits messages by how many of their key came lately. It works for workers (Middleware), for publishers
// (Authorize), and alone (Allow).
type Limiter struct {
	store  Store
	o      LimiterOptions
	limits []*limit
	outage *outage
	pacer  pacer
	spare  sync.Pool // of *[]store.Item, for a store that keeps none: no allocation instead of two (BenchmarkLayers/limit)
	counters
}

// limit is a Limit at work.
type limit struct {
	Limit
	key   KeyFunc
	mu    sync.Mutex // of those that change rules
	rules atomic.Pointer[map[string]*Rule]
}

// NewLimiter returns a limiter with its state in a store.
func NewLimiter(s Store, o LimiterOptions) (*Limiter, error) {
	if s == nil {
		return nil, driver.NewError(driver.ErrInvalid, "the limiter has no store",
			"give it NewMemory(MemoryOptions{}), for example", nil)
	}
	if len(o.Limits) == 0 {
		return nil, driver.NewError(driver.ErrInvalid, "the limiter has no limits", "give it at least one", nil)
	}
	if o.MaxPark < 0 {
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("MaxPark %v is negative", o.MaxPark),
			"leave it zero for the default", nil)
	}
	if o.OnBlocked == Park {
		o.OnBlocked = o.OnLimited
	}
	if o.MaxPark > 0 && o.OnLimited != Park && o.OnBlocked != Park {
		return nil, driver.NewError(driver.ErrInvalid, "the limiter has a MaxPark and parks nothing",
			"leave MaxPark out, or let OnLimited be Park", nil)
	}
	if o.MaxPark == 0 {
		o.MaxPark = DefaultMaxPark
	}
	for _, p := range []Policy{o.OnLimited, o.OnBlocked} {
		if err := p.validate("limiter"); err != nil {
			return nil, err
		}
	}
	l := &Limiter{store: s, o: o, outage: newOutage(s)}
	for _, one := range o.Limits {
		if err := l.add(one); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func (l *Limiter) add(o Limit) error {
	if err := driver.CheckName("limit", o.Name); err != nil {
		return err
	}
	if l.find(o.Name) != nil {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("two limits are named %q", o.Name),
			"give each a name of its own: they would count together", nil)
	}
	key, err := chooseKey("limit "+o.Name, o.Key, o.Template)
	if err != nil {
		return err
	}
	if o.Group != nil && len(o.Groups) == 0 {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("limit %q looks groups up and has none", o.Name),
			"set Groups", nil)
	}
	rules := map[string]*Rule{}
	for name, rule := range o.Groups {
		if name == "" {
			return driver.NewError(driver.ErrInvalid, fmt.Sprintf("a group of limit %q has no name", o.Name),
				"set Rule for keys of no group", nil)
		}
		if rules[name], err = resolve(o.Name, name, rule); err != nil {
			return err
		}
	}
	if o.Group == nil && len(o.Groups) > 0 {
		return driver.NewError(driver.ErrInvalid,
			fmt.Sprintf("limit %q has groups, and nothing says which key belongs to one", o.Name), "set Group", nil)
	}
	if rules[""], err = resolve(o.Name, "", o.Rule); err != nil {
		return err
	}
	one := &limit{Limit: o, key: key}
	one.rules.Store(&rules)
	l.limits = append(l.limits, one)
	return nil
}

func resolve(limit, group string, r Rule) (*Rule, error) {
	resolved, err := r.Resolve()
	if err != nil {
		where := fmt.Sprintf("limit %q", limit)
		if group != "" {
			where += fmt.Sprintf(", group %q", group)
		}
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return &resolved, nil
}

func (l *Limiter) find(name string) *limit {
	for _, one := range l.limits {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// SetRule changes the rule of a group, or with no group that of all others, from now on. Only this process learns of
// it: Admin.SetRule changes it in every process, and holds in place of this one; Admin.Override changes that of one
// key.
func (l *Limiter) SetRule(name, group string, r Rule) error {
	one := l.find(name)
	if one == nil {
		return driver.NewError(driver.ErrNotFound, fmt.Sprintf("there is no limit %.80q", name),
			"use the name of one of the limiter's limits", nil)
	}
	rule, err := resolve(name, group, r)
	if err != nil {
		return err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	rules := maps.Clone(*one.rules.Load())
	if rules[group] == nil {
		return errGroup(name, group)
	}
	rules[group] = rule
	one.rules.Store(&rules)
	return nil
}

func errGroup(limit, group string) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("limit %q has no group %.80q", limit, group),
		"name it in Groups, or let Group return one of those", nil)
}

// rule returns the group of a key, and its rule.
func (l *Limiter) rule(ctx context.Context, one *limit, key string) (group string, rule *Rule) {
	rules := *one.rules.Load()
	if one.Group == nil {
		return "", rules[""]
	}
	group = one.Group(ctx, key)
	if rule := rules[group]; rule != nil {
		return group, rule
	}
	l.o.Hook.tell(ctx, Event{Kind: EventUnknownGroup, Layer: layerLimit, Name: one.Name, Key: key,
		Err: errGroup(one.Name, group)})
	return "", rules[""]
}

// requestOf is the request of a message that a worker has. One that waited for others of its key is paced: after a
// refusal a key goes on at an even pace, or the windows of keys that were refused together would open together for
// ever.
func (l *Limiter) requestOf(ctx context.Context, d *ferry.Delivery, items []store.Item) store.Take {
	t := l.request(ctx, d.Message, items)
	t.Age = d.ClaimedAt.Sub(d.PublishedAt)
	if !l.pacer.used.Load() || d.Cause == driver.CauseReleased { // who comes back has waited for its turn
		return t
	}
	published := time.Now().Add(-t.Age) // by the local clock
	for i := range t.Items {
		t.Items[i].Paced = l.pacer.waited(lineOf(&t.Items[i]), published)
	}
	return t
}

func lineOf(item *store.Item) id { return id{item.Limit, item.Key} }

// room returns room for the items of a request. What came of it goes back into spare, if the store keeps nothing of it.
func (l *Limiter) room() *[]store.Item {
	if l.outage.instant {
		if items, ok := l.spare.Get().(*[]store.Item); ok {
			return items
		}
	}
	items := make([]store.Item, len(l.limits))
	return &items
}

func (l *Limiter) request(ctx context.Context, m *ferry.Message, items []store.Item) store.Take {
	t := store.Take{ID: m.ID, Items: items}
	for i, one := range l.limits {
		key := bounded(one.key(m))
		group, rule := l.rule(ctx, one, key)
		t.Items[i] = store.Item{Limit: one.Name, Key: key, Rule: rule, RuleName: store.RuleName(one.Name, group)}
	}
	return t
}

// Middleware limits what a worker handles.
func (l *Limiter) Middleware() worker.Middleware {
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, d *ferry.Delivery) error {
			items := l.room()
			if l.outage.instant {
				defer l.spare.Put(items)
			}
			t := l.requestOf(ctx, d, *items)
			v, wait, err := l.ask(ctx, t)
			switch {
			case err != nil && l.o.FailOpen:
				return next(ctx, d)
			case err != nil:
				return (&Refusal{Layer: layerLimit, Name: l.limits[0].Name, Key: t.Items[0].Key, After: wait,
					Err: err}).decide(Park, wait)
			case !v.Admitted:
				return l.refuse(&t, &v, d.Cause == driver.CauseReleased)
			}
			err = next(ctx, d)
			if by := refusedBy(err); by != "" && by != layerLimit { // a later layer: it was not handled
				_ = l.outage.later(ctx, func(ctx context.Context) error { return l.store.Return(ctx, t, v.Ticket) })
			}
			return err
		}
	}
}

// refuse says what becomes of a message that may not pass.
func (l *Limiter) refuse(t *store.Take, v *Verdict, again bool) error {
	r := refusalOf(t, v)
	policy := l.o.OnLimited
	if v.Blocked {
		policy = l.o.OnBlocked
	}
	wait := v.After
	if policy == Park && !v.Blocked && wait < l.o.MaxPark {
		line := lineOf(&t.Items[v.Item])
		if l.pacer.empty(line) {
			wait += phase(line, v.Step)
		}
		wait = l.pacer.wait(line, wait, v.Step, again)
	}
	return r.decide(policy, atMost(wait, l.o.MaxPark))
}

func refusalOf(t *store.Take, v *Verdict) *Refusal {
	item := t.Items[v.Item]
	r := &Refusal{Layer: layerLimit, Name: item.Limit, Key: item.Key, Reason: driver.ReasonRateLimited, After: v.After}
	if v.Blocked {
		r.Reason = driver.ReasonKeyBlocked
	}
	return r
}

// ask asks the store and counts the answer.
func (l *Limiter) ask(ctx context.Context, t store.Take) (v Verdict, wait time.Duration, err error) {
	wait, ok := l.outage.may()
	if err = errStoreDown; ok {
		bounded, cancel := l.outage.bounded(ctx)
		v, err = l.store.Take(bounded, t)
		cancel()
		wait = l.outage.learn(err)
	}
	l.tell(ctx, &t, &v, err)
	return v, wait, err
}

func (l *Limiter) tell(ctx context.Context, t *store.Take, v *Verdict, err error) {
	if err == nil && v.Admitted && l.o.Hook == nil {
		l.admitted.Add(1)
		return
	}
	e := Event{Layer: layerLimit, Name: t.Items[v.Item].Limit, Key: t.Items[v.Item].Key, ID: t.ID,
		After: v.After, Err: err}
	switch {
	case err != nil:
		l.failures.Add(1)
		e.Kind = EventStoreFailed
	case v.Admitted:
		l.admitted.Add(1)
		e.Kind = EventAdmitted
	case v.Blocked:
		l.refused.Add(1)
		l.blocked.Add(1)
		e.Kind = EventBlocked
	default:
		l.refused.Add(1)
		l.limited.Add(1)
		e.Kind = EventLimited
	}
	l.o.Hook.tell(ctx, e)
	if v.Penalty > 0 {
		l.penalties.Add(1)
		e.Kind, e.After = EventPenalized, v.Penalty
		l.o.Hook.tell(ctx, e)
	}
}

// Allow asks whether a message may pass, and counts it. The error is a *Refusal that says when to try again. It serves
// programs without a worker.
func (l *Limiter) Allow(ctx context.Context, m *ferry.Message) error {
	t := l.request(ctx, m, *l.room())
	v, wait, err := l.ask(ctx, t)
	switch {
	case err != nil && l.o.FailOpen:
		return nil
	case err != nil:
		return &Refusal{Layer: layerLimit, Name: l.limits[0].Name, Key: t.Items[0].Key, After: wait, Err: err}
	case v.Admitted:
		return nil
	}
	return refusalOf(&t, &v)
}

// Authorize is a hook for ferry.Hooks: it limits publishers. A publish over the limit fails with ferry.ErrRefused, and
// errors.As finds the *Refusal. Subscriptions pass.
func (l *Limiter) Authorize(ctx context.Context, a ferry.Access) error {
	if a.Message == nil {
		return nil
	}
	return l.Allow(ctx, a.Message)
}

// Check tells whether a message would pass now, and counts nothing.
func (l *Limiter) Check(ctx context.Context, m *ferry.Message) error {
	t := l.request(ctx, m, *l.room())
	t.Peek = true
	v, err := l.store.Take(ctx, t)
	switch {
	case err != nil:
		return err
	case v.Admitted:
		return nil
	}
	return refusalOf(&t, &v)
}

// Stats count what the limiter did in this process.
func (l *Limiter) Stats() Stats { return l.stats() }
