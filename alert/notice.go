package alert

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

// send queues a notice.
func (w *Watch) send(ctx context.Context, rule *compiled, a *Alert) error {
	m := notify.NewMessage(fmt.Sprintf("[%s] %s", strings.ToUpper(string(a.Severity)), a.Rule), a.Text).
		WithID(a.notice()).WithPriority(severities[a.Severity]).AddTarget(targets(rule, w.settings.Load().channels)...).
		WithMetadata("rule", a.Rule).WithMetadata("subject", a.Subject).WithMetadata("status", string(a.Owed))
	if a.Owed == Resolved {
		m.Title = "[RESOLVED] " + a.Rule
		m.Body = fmt.Sprintf("%s: %s after %v", a.Subject, cmp.Or(a.EndedBy, "over"),
			a.Ended.Sub(a.Since).Round(time.Second))
	}
	_, err := w.o.Hub.Send(ctx, w.settings.Load().grouped(m))
	return err
}

// text is the body of a notice.
func (w *Watch) text(rule *compiled, s *subject) string {
	values := maps.Clone(s.values)
	maps.Copy(values, map[string]any{"rule": rule.Name, "subject": s.name, "severity": string(rule.Severity),
		"threshold": rule.Threshold})
	for _, name := range rule.text.Variables() {
		if _, ok := values[name]; !ok {
			values[name] = 0.0 // a figure that the condition does not need, and nobody knows
		}
	}
	text, err := rule.text.Execute(values)
	if err != nil {
		text = rule.Name + ": " + s.name
	}
	return fit(rule.withAction(text))
}

// withAction adds what is to be done.
func (c *compiled) withAction(text string) string {
	if c.Action == "" {
		return text
	}
	return text + "\n" + c.Action
}

// fit cuts a text to what a notice takes: one that the hub refuses would tell nobody.
func fit(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if r := []rune(text); len(r) > notify.MaxBody {
		return string(r[:notify.MaxBody-1]) + "…"
	}
	return text
}

// Test sends a notice of a rule as if it fired, to the rule's channels, and returns its handle.
func (w *Watch) Test(ctx context.Context, rule string) (*notify.Handle, error) {
	s, err := w.refresh(ctx)
	if err != nil {
		return nil, err
	}
	r := s.find(rule)
	if r == nil {
		return nil, noRule(rule)
	}
	return w.o.Hub.Send(ctx, r.test(w.settings.Load().channels))
}

// TestMessage is the notice that Test sends of one of the rules, for who has no watch: a notify.Sender takes it.
func TestMessage(rules []Rule, channels map[string][]notify.Target, rule string) (*notify.Message, error) {
	for _, r := range rules {
		if r.Name == rule {
			return (&compiled{Rule: r}).test(channels), nil
		}
	}
	return nil, noRule(rule)
}

func (c *compiled) test(channels map[string][]notify.Target) *notify.Message {
	return notify.NewMessage("[TEST] "+c.Name, "This is a test of the rule: "+cmp.Or(c.When, "an event")).
		AddTarget(targets(c, channels)...)
}

func noRule(name string) error {
	return driver.NewError(ferry.ErrNotFound, fmt.Sprintf("there is no rule %.80q", name), "see the rules", nil)
}
