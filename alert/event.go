package alert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

// Rules of events that GuardHook raises.
const (
	UserBlocked      = "UserBlocked"
	BreakerOpen      = "UserCircuitBreakerOpen"
	ManyUsersBlocked = "ManyUsersBlocked"
)

// Messages is a value of events: ids of messages, as a []string. The history has them all, webhooks get them as
// metadata, and a text as many as fit.
const Messages = "messages"

const (
	maxEvents   = 256  // that wait for being told
	maxMessages = 3000 // bytes of ids in a text
)

// event is something that happened in this process.
type event struct {
	rule, subject string
	values        map[string]any
}

// Raise tells people of an event, by a rule that has no condition. Of one subject at most one notice is sent in each
// cool-down of the rule, whichever processes raise it; it reports whether this one was.
func (w *Watch) Raise(ctx context.Context, rule, subject string, values map[string]any) (bool, error) {
	if _, err := w.refresh(ctx); err != nil {
		return false, err
	}
	r := w.eventRule(rule)
	if r == nil {
		return false, driver.NewError(ferry.ErrNotFound, fmt.Sprintf("there is no rule of events %.80q", rule),
			"add one without a condition", nil)
	}
	kv := w.broker.Driver().KV()
	quiet, err := w.Silences(ctx)
	if err != nil || r.Disabled || silenced(quiet, rule, subject) {
		return false, err
	}
	ids, _ := values[Messages].([]string)
	all := map[string]any{"rule": rule, "subject": subject, "severity": string(r.Severity), "threshold": r.Threshold}
	maps.Copy(all, values)
	all[Messages] = messagesText(ids)
	text, err := r.text.Execute(all)
	if err != nil {
		return false, err
	}
	text = fit(r.withAction(text))
	now := time.Now()
	m := notify.NewMessage(fmt.Sprintf("[%s] %s", strings.ToUpper(string(r.Severity)), rule), text).
		WithPriority(severities[r.Severity]).
		AddTarget(targets(r, w.settings.Load().channels)...)
	if len(ids) > 0 {
		m.WithMetadata(Messages, strings.Join(ids, ","))
	}
	if told, err := w.tell(ctx, r, subject, m); !told {
		return false, err
	}
	return true, record(ctx, kv, Entry{At: now, Rule: rule, Subject: subject, Severity: r.Severity, What: "raised",
		Text: text, Messages: ids})
}

// messagesText is a list of ids that leaves room for the rest of a notice.
func messagesText(ids []string) string {
	if len(ids) == 0 {
		return "none known"
	}
	text := ids[0]
	for i, id := range ids[1:] {
		if len(text)+len(id) > maxMessages {
			return fmt.Sprintf("%s and %d more", text, len(ids)-1-i)
		}
		text += ", " + id
	}
	return text
}

// eventBucket has a value for each event that was told of, for its cool-down.
var eventBucket = bucket + ".events"

// tell queues the notice of an event, unless another of its subject was within the cool-down. The value comes first, so
// that of processes that raise it at the same time one tells; should that one be killed in between, nobody does.
func (w *Watch) tell(ctx context.Context, r *compiled, subject string, m *notify.Message) (bool, error) {
	kv, sum := w.broker.Driver().KV(), sha256.Sum256([]byte(r.Name+"/"+subject))
	mark := driver.Write{Name: hex.EncodeToString(sum[:16]), Data: []byte(r.Name), If: driver.Absent,
		TTL: max(r.Cooldown, driver.MinValueTTL), Quiet: true}
	first := kv.Apply(ctx, eventBucket, driver.KVOptions{}, mark)[0]
	switch {
	case errors.Is(first.Err, ferry.ErrConflict):
		return false, nil
	case first.Err != nil:
		return false, first.Err
	}
	_, err := w.o.Hub.Send(ctx, m)
	if err != nil {
		kv.Apply(ctx, eventBucket, driver.KVOptions{}, driver.Write{Name: mark.Name, Delete: true,
			If: driver.Condition(first.Revision)})
	}
	return err == nil, err
}

func (w *Watch) eventRule(name string) *compiled {
	r := w.rules.Load().find(name)
	if r == nil || r.program != nil {
		return nil
	}
	return r
}

// tellEvents raises what hooks noted.
func (w *Watch) tellEvents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.events:
			if _, err := w.Raise(ctx, e.rule, e.subject, e.values); err != nil && ctx.Err() == nil {
				w.log.ErrorContext(ctx, "an event was not told", "rule", e.rule, "subject", e.subject, "error", err)
			}
		}
	}
}

// note leaves an event to Run. It does not wait: a hook runs in line.
func (w *Watch) note(ctx context.Context, e event) {
	if w.eventRule(e.rule) == nil {
		return
	}
	select {
	case w.events <- e:
	default:
		w.log.WarnContext(ctx, "an event is not told, since too many wait", "rule", e.rule, "subject", e.subject)
	}
}
