package alert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
)

// Duty is what the evaluating process leads: see cluster.Lead.
const Duty = "alerts"

var bucket = cluster.LeadBucket(Duty)

// Status of an alert.
type Status string

// Statuses: the condition holds, not yet for long enough; it fires; it is over.
const (
	Pending  Status = "pending"
	Firing   Status = "firing"
	Resolved Status = "resolved"
)

// Alert is what is known of one rule and one subject.
type Alert struct {
	Rule     string   `json:"rule"`
	Subject  string   `json:"subject"`
	Severity Severity `json:"severity"`
	Status   Status   `json:"status"`
	Text     string   `json:"text,omitempty"`
	// Since is when the condition began to hold, Fired when it had held for long enough, and Ended when it ended.
	Since time.Time `json:"since"`
	Fired time.Time `json:"fired,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	// Notified is when people were last told, Notices how often since it fired.
	Notified time.Time `json:"notified,omitzero"`
	Notices  int       `json:"notices,omitempty"`
	// Owed is a notice that was decided on and is not queued yet: Firing or Resolved.
	Owed Status `json:"owed,omitempty"`
	// EndedBy is why it is over although its condition may hold: the rule was removed, or disabled.
	EndedBy string `json:"ended_by,omitempty"`
	// Channels are those of the rule when people were told: a rule that is removed cannot say whom to tell.
	Channels []string `json:"channels,omitempty"`
	// Entered is when the history was last told that it fires. One that comes and goes is told of once in a cool-down.
	Entered time.Time `json:"entered,omitzero"`
	// Acknowledged is who takes care of it. Empty: nobody. Filled in by List.
	Acknowledged string `json:"acknowledged,omitempty"`
}

func stateName(rule, subject string) string { return "state/" + rule + "/" + subject }

func ackName(rule, subject string) string { return "ack/" + rule + "/" + subject }

// alertKey names an alert.
type alertKey struct{ rule, subject string }

func (a *Alert) key() alertKey { return alertKey{a.Rule, a.Subject} }

// notice is the id of the notice that is owed: whoever sends it chooses the same.
func (a *Alert) notice() string {
	sum := sha256.Sum256([]byte(stateName(a.Rule, a.Subject)))
	return fmt.Sprintf("alert-%s-%d-%d-%.1s", hex.EncodeToString(sum[:8]), a.Since.UnixMilli(), a.Notices, a.Owed)
}

// next is the alert after a look in which the condition held or not. While it is silenced nobody is told, and once it
// is acknowledged nobody is reminded.
func (a Alert) next(r *compiled, holds, silenced, acked bool, now time.Time) Alert {
	if !holds {
		return a.end(now)
	}
	a.Severity = r.Severity // the rule may have changed
	if a.Status != Pending && a.Status != Firing {
		a.Status, a.Since, a.Fired, a.Ended, a.Notices, a.Owed = Pending, now, time.Time{}, time.Time{}, 0, ""
		a.EndedBy = ""
	}
	if a.Status == Pending && now.Sub(a.Since) >= r.For {
		a.Status, a.Fired = Firing, now
		if a.Entered.IsZero() || now.Sub(a.Entered) >= r.Cooldown {
			a.Entered = now
		}
	}
	cool := a.Notified.IsZero() || now.Sub(a.Notified) >= r.Cooldown
	if a.Status == Firing && a.Owed == "" && cool && !silenced && !(acked && a.Notices > 0) {
		a.Owed, a.Channels = Firing, r.Channels
	}
	return a
}

// equal reports whether nothing has changed.
func (a Alert) equal(b Alert) bool {
	same := slices.Equal(a.Channels, b.Channels)
	a.Channels, b.Channels = nil, nil
	return same && reflect.DeepEqual(a, b)
}

// end is the alert when its condition does not hold. Who was told is told that it is over.
func (a Alert) end(now time.Time) Alert {
	switch a.Status {
	case Pending:
		a.Status, a.Ended = Resolved, now
	case Firing:
		a.Status, a.Ended, a.Owed = Resolved, now, ""
		if a.Notices > 0 {
			a.Owed = Resolved
		}
	}
	return a
}

// remembered is how long an alert that is over is kept: its cool-down goes on.
func (a *Alert) remembered(r *compiled) time.Duration { return max(r.Cooldown, time.Hour) }

// store reads and writes what is known, under the lease of the leader.
type store struct {
	kv    driver.KV
	fence *driver.Fence
}

// put writes an alert. One that never fired and is over is removed.
func (s store) put(ctx context.Context, a *Alert, r *compiled) error {
	w := driver.Write{Name: stateName(a.Rule, a.Subject), Fence: s.fence, Delete: a.Status == Resolved && a.Fired.IsZero()}
	if !w.Delete {
		data, err := json.Marshal(a)
		if err != nil {
			return err
		}
		w.Data = data
		if a.Status == Resolved && a.Owed == "" {
			w.TTL = a.remembered(r)
		}
	}
	return s.kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0].Err
}

// remove forgets an alert.
func (s store) remove(ctx context.Context, a *Alert) error {
	w := driver.Write{Name: stateName(a.Rule, a.Subject), Delete: true, Fence: s.fence}
	return s.kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0].Err
}

// list reads all values of a kind from a bucket, decoded by read.
func list(ctx context.Context, kv driver.KV, from, prefix string, limit int, read func(v driver.Value) error) error {
	q := driver.KVQuery{Bucket: from, Prefix: prefix, Limit: min(limit, driver.MaxLimit)}
	for n := 0; ; {
		page, err := kv.List(ctx, q)
		if err != nil {
			return err
		}
		for _, v := range page.Values {
			if err := read(v); err != nil {
				return err
			}
			if n++; n == limit {
				return nil
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

const all = 1 << 30

// List returns what is known of alerts, in order of rules and subjects.
func List(ctx context.Context, b *ferry.Broker) ([]Alert, error) {
	kv := b.Driver().KV()
	acks, err := acknowledged(ctx, kv)
	if err != nil {
		return nil, err
	}
	var found []Alert
	err = list(ctx, kv, bucket, "state/", all, func(v driver.Value) error {
		var a Alert
		if err := json.Unmarshal(v.Data, &a); err != nil {
			return err
		}
		a.Acknowledged = acks[ackName(a.Rule, a.Subject)]
		found = append(found, a)
		return nil
	})
	return found, err
}

// Get returns what is known of a rule and a subject. ErrNotFound: nothing, it does not fire and did not lately.
func Get(ctx context.Context, b *ferry.Broker, rule, subject string) (Alert, error) {
	var a Alert
	values, err := b.Driver().KV().Get(ctx, bucket, stateName(rule, subject), ackName(rule, subject))
	if err != nil {
		return a, err
	}
	if values[0].Revision == 0 {
		return a, driver.NewError(ferry.ErrNotFound, fmt.Sprintf("rule %.80q does not fire for %.80q", rule, subject),
			"ferry alert ls shows what fires", nil)
	}
	err = json.Unmarshal(values[0].Data, &a)
	a.Acknowledged = string(values[1].Data)
	return a, err
}

// acknowledged are who takes care of what.
func acknowledged(ctx context.Context, kv driver.KV) (map[string]string, error) {
	acks := map[string]string{}
	err := list(ctx, kv, bucket, "ack/", all, func(v driver.Value) error {
		acks[v.Name] = string(v.Data)
		return nil
	})
	return acks, err
}

// ackFor is how long an acknowledgement lasts, unless its alert is over before.
const ackFor = 24 * time.Hour

// Acknowledge says who takes care of an alert that fires: it sends no more reminders for a day, and tells when it is
// over.
func Acknowledge(ctx context.Context, b *ferry.Broker, rule, subject, who string) error {
	if strings.TrimSpace(who) == "" || len(who) > 200 {
		return driver.NewError(ferry.ErrInvalid, "nobody acknowledges", "say who, in at most 200 bytes", nil)
	}
	a, err := Get(ctx, b, rule, subject)
	if err != nil {
		return err
	}
	if a.Status != Firing {
		return driver.NewError(ferry.ErrNotFound, fmt.Sprintf("rule %.80q does not fire for %.80q", rule, subject),
			"ferry alert ls shows what fires", nil)
	}
	kv := b.Driver().KV()
	w := driver.Write{Name: ackName(rule, subject), Data: []byte(who), TTL: ackFor}
	err = kv.Apply(ctx, bucket, driver.KVOptions{}, w)[0].Err
	return errors.Join(err, record(ctx, kv, Entry{At: time.Now(), Rule: rule, Subject: subject, Severity: a.Severity,
		What: "acknowledged", Text: who}))
}
