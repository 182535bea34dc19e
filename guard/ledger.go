package guard

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard/store"
)

// ledger is a store in this process, without locks: the stores around it lock. Its slots and its marks have nothing to
// do with the rest, nor with each other, and may have locks of their own. Every method is given the time.
type ledger struct {
	epoch    time.Time
	maxKeys  int
	accounts map[id]*account
	recorded map[id]*account // those with a record
	debt     int             // of looks for idle accounts, in 1/64
	swept    time.Time       // when all were looked at because there was no room

	slots slots
	marks marks

	rules   map[string]*SharedRule // by store.RuleName
	audit   []Change               // oldest first
	forced  map[string]State
	reports map[string][]BreakerStatus // by instance

	// keep is told of every change that must outlive the process. May be nil.
	keep func(entry)
}

// id names an account: a key of a limit.
type id struct{ limit, key string }

// account is what is known of one key.
type account struct {
	rule       *Rule // last asked with
	window     ring
	tokens     float64
	filled     time.Duration // when tokens was right; zero: never used
	violations int
	waits      []waiting     // messages that were refused, the newest last
	expires    time.Duration // when all but the record may be forgotten
	record     *record
}

// waiting is a message that was refused.
type waiting struct {
	id        string
	published time.Duration // a time of the ledger
}

// record is the part of an account that outlives the process.
type record struct {
	Level       int       `json:"level,omitempty"` // blocks so far, each longer than the one before
	Forget      time.Time `json:"forget,omitzero"` // when the level starts at zero again
	Blocked     bool      `json:"blocked,omitempty"`
	Until       time.Time `json:"until,omitzero"` // of the block; zero: for good
	Paid        time.Time `json:"paid,omitzero"`  // what was published before is no violation
	Override    *Override `json:"override,omitempty"`
	Whitelisted bool      `json:"whitelisted,omitempty"`
	Actor       string    `json:"actor,omitempty"`
	Reason      string    `json:"reason,omitempty"`
}

// DefaultMaxKeys bounds how many keys, slots and marks a store in this process remembers, each.
const DefaultMaxKeys = 1_000_000

func newLedger(now time.Time, maxKeys int) *ledger {
	if maxKeys <= 0 {
		maxKeys = DefaultMaxKeys
	}
	return &ledger{
		epoch: now.Add(-time.Second), maxKeys: maxKeys, accounts: map[id]*account{}, recorded: map[id]*account{},
		rules: map[string]*SharedRule{}, forced: map[string]State{}, reports: map[string][]BreakerStatus{},
		slots: slots{most: maxKeys, of: map[id]*slotSet{}}, marks: marks{most: maxKeys, of: map[digest]mark{}},
	}
}

// now is the time by the monotonic clock alone, which is quicker to read and never jumps.
func (l *ledger) now() time.Time { return l.epoch.Add(l.at()) }

// at is now, as a time of the ledger.
func (l *ledger) at() time.Duration { return time.Since(l.epoch) }

// answer is what one item of a Take says.
type answer struct {
	acc         *account // nil: not seen yet
	ok, blocked bool
	paced       bool // refused, and only waits for its turn
	after       time.Duration
	rule        *Rule // that holds
}

func (l *ledger) take(now time.Time, t *store.Take) (Verdict, error) {
	if !t.Peek {
		l.tidy(now, 1)
	}
	at := now.Sub(l.epoch)
	v := Verdict{Admitted: true, Ticket: uint64(at)}
	var room [4]answer
	answers := room[:0]
	for i := range t.Items {
		acc := l.accounts[id{t.Items[i].Limit, t.Items[i].Key}]
		a := acc.judge(now, at, l.rule(&t.Items[i]))
		if t.Items[i].Paced {
			a = acc.pace(at, a)
		}
		a.acc = acc
		answers = append(answers, a)
		if !a.ok && (v.Admitted || a.after > v.After) {
			v.Admitted, v.Item, v.Blocked, v.After = false, i, a.blocked, a.after
		}
	}
	if t.Peek {
		return v, nil
	}
	for i := range t.Items {
		a, acc := &answers[i], answers[i].acc
		if acc == nil {
			var err error
			if acc, err = l.account(now, id{t.Items[i].Limit, t.Items[i].Key}); err != nil {
				return Verdict{}, err
			}
		}
		acc.rule = l.rule(&t.Items[i])
		switch {
		case v.Admitted:
			acc.count(at, a.rule)
			if acc.violations > 0 && !t.Items[i].Paced && !acc.waited(t.ID) {
				acc.violations = 0
			}
		case !a.ok && !a.blocked:
			l.refuse(now, acc, t, a, &v, i)
		}
	}
	if !v.Admitted {
		v.Step = answers[v.Item].rule.Step()
	}
	return v, nil
}

// rule returns the rule of an item: the one that operators set, or else the one that it brings.
func (l *ledger) rule(item *store.Item) *Rule {
	if len(l.rules) > 0 && item.RuleName != "" {
		if shared := l.rules[item.RuleName]; shared != nil {
			return &shared.Rule
		}
	}
	return item.Rule
}

// judge says whether a message may pass, and changes nothing. A nil account has never been seen.
func (acc *account) judge(now time.Time, at time.Duration, rule *Rule) answer {
	if acc == nil {
		return answer{ok: true, rule: rule}
	}
	if r := acc.record; r != nil {
		switch {
		case r.Whitelisted:
			return answer{ok: true, rule: &unlimited}
		case r.blocked(now) && r.Until.IsZero():
			return answer{blocked: true, after: Forever, rule: rule}
		case r.blocked(now):
			return answer{blocked: true, after: r.Until.Sub(now), rule: rule}
		case r.Override != nil && now.Before(r.Override.Until):
			rule = &r.Override.Rule
		}
	}
	switch {
	case rule.Unlimited:
		return answer{ok: true, rule: rule}
	case rule.Burst > 0:
		missing := 1 - acc.level(at, rule)
		if missing <= 1e-9 {
			return answer{ok: true, rule: rule}
		}
		return answer{after: 1 + time.Duration(missing*float64(rule.Window)/float64(rule.Limit)), rule: rule}
	}
	if acc.window.n < rule.Limit { // also with those that have left the window meanwhile
		return answer{ok: true, rule: rule}
	}
	n, first := acc.window.after(at - rule.Window)
	if n < rule.Limit {
		return answer{ok: true, rule: rule}
	}
	return answer{after: acc.window.at(first+n-rule.Limit) + rule.Window - at, rule: rule}
}

// pace is the answer to a message that waited for others of its key: it may come too soon after the one before it.
func (acc *account) pace(at time.Duration, a answer) answer {
	if !a.ok {
		a.paced = !a.blocked
		return a
	}
	if acc == nil || acc.window.n == 0 || a.rule.Burst > 0 {
		return a
	}
	wait := acc.window.at(acc.window.n-1) + a.rule.Step() - at
	if wait <= 0 {
		return a
	}
	return answer{paced: true, after: wait, rule: a.rule}
}

var unlimited = Rule{Unlimited: true}

func (r *record) blocked(now time.Time) bool {
	return r.Blocked && (r.Until.IsZero() || now.Before(r.Until))
}

// level is how many tokens there are.
func (acc *account) level(at time.Duration, rule *Rule) float64 {
	if acc.filled == 0 {
		return float64(rule.Burst)
	}
	return min(float64(rule.Burst), acc.tokens+float64(at-acc.filled)*float64(rule.Limit)/float64(rule.Window))
}

// count notes an admitted message.
func (acc *account) count(at time.Duration, rule *Rule) {
	switch {
	case rule.Unlimited:
		acc.expires = max(acc.expires, at+time.Minute)
		return
	case rule.Burst > 0:
		acc.tokens, acc.filled = acc.level(at, rule)-1, at
		full := time.Duration((float64(rule.Burst) - acc.tokens) * float64(rule.Window) / float64(rule.Limit))
		acc.expires = max(acc.expires, at+max(full+1, time.Second)) // a busy key is not forgotten between two messages
	default:
		acc.window.forget(at - rule.Window)
		acc.window.add(at)
		acc.expires = max(acc.expires, at+rule.Window)
	}
}

// refuse notes a message that item i refused, and blocks its key if there were too many violations.
func (l *ledger) refuse(now time.Time, acc *account, t *store.Take, a *answer, v *Verdict, i int) {
	p := a.rule.Penalty
	if p.After == 0 {
		return
	}
	at := now.Sub(l.epoch)
	if published := at - t.Age; acc.wait(t.ID, published) && l.violates(acc, published, a) {
		acc.violations++
	}
	acc.expires = max(acc.expires, at+max(p.History, a.rule.Window))
	if v.Item == i {
		v.Violations = acc.violations
	}
	if acc.violations < p.After {
		return
	}
	acc.violations = 0
	d := l.penalize(now, acc, &t.Items[i], p)
	if d > v.After || v.Item == i {
		v.Item, v.After, v.Penalty = i, d, d
	}
}

// wait notes a message that was refused, and reports whether that is new.
func (acc *account) wait(message string, published time.Duration) bool {
	if acc.waited(message) {
		return false
	}
	if message != "" {
		if len(acc.waits) >= waitsBound {
			acc.waits = append(acc.waits[:0:0], acc.waits[1:]...)
		}
		acc.waits = append(acc.waits, waiting{message, published})
	}
	return true
}

// violates reports whether a refused message is a violation. What was published before the last penalty is paid for;
// what only waits for its turn is a violation if it was published too fast.
func (l *ledger) violates(acc *account, published time.Duration, a *answer) bool {
	if r := acc.record; r != nil && published < r.Paid.Sub(l.epoch) {
		return false
	}
	return !a.paced || acc.tooFast(published, a.rule)
}

// waited reports whether a message was refused before.
func (acc *account) waited(message string) bool {
	return message != "" && slices.ContainsFunc(acc.waits, func(w waiting) bool { return w.id == message })
}

// tooFast reports whether the messages that waited, up to the one that was published then, came faster than a rule
// admits them.
func (acc *account) tooFast(published time.Duration, rule *Rule) bool {
	most, span := rule.TooFast()
	n := 0
	for _, w := range acc.waits {
		if w.published > published-span && w.published <= published {
			n++
		}
	}
	return n > most
}

// penalize blocks a key and returns for how long.
func (l *ledger) penalize(now time.Time, acc *account, item *store.Item, p Penalty) time.Duration {
	r := l.recordOf(id{item.Limit, item.Key}, acc)
	if !now.Before(r.Forget) {
		r.Level = 0
	}
	d := blockTime(p, r.Level)
	r.Level++
	r.Blocked, r.Until, r.Paid, r.Actor, r.Reason = true, now.Add(d), now, "", ReasonPenalty
	r.Forget = r.Until.Add(p.History)
	l.store(item.Limit, item.Key, r)
	return d
}

func (l *ledger) recordOf(k id, acc *account) *record {
	if acc.record == nil {
		acc.record = new(record)
		l.recorded[k] = acc
	}
	return acc.record
}

// store passes a record on to what keeps it.
func (l *ledger) store(limit, key string, r *record) {
	if l.keep != nil {
		kept := *r
		l.keep(entry{Limit: limit, Key: key, Record: &kept})
	}
}

func (l *ledger) giveBack(now time.Time, t *store.Take, ticket uint64) {
	at := now.Sub(l.epoch)
	for i := range t.Items {
		acc := l.accounts[id{t.Items[i].Limit, t.Items[i].Key}]
		if acc == nil || acc.window.remove(time.Duration(ticket)) {
			continue
		}
		if rule := acc.judge(now, at, l.rule(&t.Items[i])).rule; rule.Burst > 0 && acc.filled > 0 {
			acc.tokens, acc.filled = min(float64(rule.Burst), acc.level(at, rule)+1), at
		}
	}
}

// account returns what is known of a key, and makes room for a new one.
func (l *ledger) account(now time.Time, k id) (*account, error) {
	if acc := l.accounts[k]; acc != nil {
		return acc, nil
	}
	if len(l.accounts) >= l.maxKeys {
		if now.Sub(l.swept) >= time.Second {
			l.sweep(now, len(l.accounts))
			l.swept = now
		}
		if len(l.accounts) >= l.maxKeys {
			return nil, driver.NewError(driver.ErrFull, fmt.Sprintf("the guard store remembers %d keys already", l.maxKeys),
				"raise MaxKeys, or limit by something that has fewer values", nil)
		}
	}
	l.tidy(now, 256)
	acc := new(account)
	l.accounts[k] = acc
	return acc, nil
}

// tidy looks for idle accounts now and then, so that there are at most about a third more than are needed: four looks
// for each new one, and one for every 64 messages.
func (l *ledger) tidy(now time.Time, debt int) {
	const batch = 256
	if l.debt += debt; l.debt >= 64*batch {
		l.debt = 0
		l.sweep(now, batch)
	}
}

func (l *ledger) sweep(now time.Time, look int) {
	for k, acc := range l.accounts { // begins anywhere
		if acc.idle(now, l.epoch) {
			delete(l.accounts, k)
			delete(l.recorded, k)
		}
		if look--; look <= 0 {
			break
		}
	}
}

func (acc *account) idle(now, epoch time.Time) bool {
	return now.Sub(epoch) >= acc.expires && (acc.record == nil || acc.record.idle(now))
}

// idle reports whether a record says nothing any more.
func (r *record) idle(now time.Time) bool {
	return !r.Whitelisted && !r.blocked(now) && (r.Override == nil || !now.Before(r.Override.Until)) &&
		!now.Before(r.Forget)
}

// blockTime is how long the block after so many earlier ones lasts.
func blockTime(p Penalty, level int) time.Duration {
	d := float64(p.Block) * math.Pow(p.Factor, float64(level))
	if d >= float64(p.Max) {
		return p.Max
	}
	return time.Duration(d)
}
