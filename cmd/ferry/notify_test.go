package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

func TestNotify(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b, err := ferry.New(d.driver, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	never := notify.Func(func(context.Context, notify.Rendered) (notify.Sent, error) { return notify.Sent{}, nil })
	hub, err := notify.New(b, notify.Options{Channels: map[string]notify.Channel{"webhook": never}})
	if err != nil {
		t.Fatal(err)
	}
	m := notify.NewMessage("t", "b").WithID("m1").AddWebhook("https://example.com/secret", "https://example.org/secret")
	if _, err := hub.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	d.has(d.ok("notify", "status", "m1"), "queued, 0 of 2 reached", "webhook https://example.com/***: queued")
	d.has(d.ok("notify", "cancel", "m1", "--output", "json"), `"cancelled": 2`)
	d.has(d.ok("notify", "status", "m1", "--wait", "--output", "json"), `"status": "cancelled"`)
	d.fails(exitNotFound, "there is no receipt", "notify", "status", "m2")
}

// TestNotifySend: the command queues for a hub of another process, which has the channels.
func TestNotifySend(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("notify", "channels"), "Nobody sends notifications")
	d.fails(exitNotFound, "nobody sends notifications", "notify", "send", "t", "--to", "chat:ops")
	b, err := ferry.New(d.driver, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var arrived []string // read when receipts say that it was written
	chat := notify.Func(func(_ context.Context, r notify.Rendered) (notify.Sent, error) {
		if r.To != "ops" {
			return notify.Sent{}, &notify.Error{Code: notify.CodeInvalidTarget, Text: "there is no " + r.To}
		}
		arrived = append(arrived, strings.TrimSuffix(r.Title+": "+r.Body+" "+r.Data["at_all"], " "))
		return notify.Sent{}, nil
	})
	hub, err := notify.New(b, notify.Options{Channels: map[string]notify.Channel{"chat": chat},
		Templates: map[string]notify.MessageTemplate{"full": {Title: "{host}", Body: "{left:.1%} is left"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Run(ctx) })
	defer running.Wait()
	defer stop()
	for begin := time.Now(); !strings.Contains(d.ok("notify", "channels"), "chat"); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("the hub has not announced itself")
		}
	}
	d.has(d.ok("notify", "send", "Disk full", "2 % left", "--to", "chat:ops", "--priority", "urgent", "--wait"),
		"success, 1 of 1 reached")
	id := strings.TrimSpace(d.ok("notify", "send", "t", "--to", "chat:ops", "--delay", "1h"))
	d.has(d.ok("notify", "status", id), "queued")
	d.has(d.ok("notify", "send", "--template", "full", "--set", "host=db1", "--set", "left=0.02", "--data", "at_all=true",
		"--to", "chat:ops", "--wait"), "success")
	d.has(d.ok("notify", "send", "{host}", "--set", "host=007", "--to", "chat:ops", "--wait"), "success")
	if got := strings.Join(arrived, "|"); got != "Disk full: 2 % left|db1: 2.0% is left true|007: " {
		t.Errorf("%s arrived", got)
	}
	d.has(d.ok("notify", "test", "chat", "ops"), "success")
	d.fails(exitUsage, "unknown variable", "notify", "send", "--template", "full", "--to", "chat:ops")
	d.fails(exitUsage, "there is no template", "notify", "send", "--template", "none", "--to", "chat:ops")
	d.fails(exitUsage, "either a title or a template", "notify", "send", "--to", "chat:ops")
	d.fails(exitUsage, "either a title or a template", "notify", "send", "t", "--template", "full", "--to", "chat:ops")
	d.fails(exitUsage, "name=value", "notify", "send", "t", "--set", "host", "--to", "chat:ops")
	d.fails(exitFailure, "0 of 1 targets were reached", "notify", "test", "chat", "team")
	d.fails(exitUsage, "names no channel", "notify", "send", "t", "--to", "ops")
	d.fails(exitUsage, "there is no channel", "notify", "send", "t", "--to", "mail:ops")
	d.fails(exitUsage, "is not known", "notify", "send", "t", "--to", "chat:ops", "--retry", "often")

	file := filepath.Join(t.TempDir(), "ferry.yaml")
	text := "notify: {channels: {chat: {kind: slack, robots: {ops: {}}}}}\n" +
		"alerts: {rules: [{name: deep, when: ready > 7}], channels: {slack: [{channel: chat, to: ops}]}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.has(d.ok("alert", "test", "deep", "--config", file), "success, 1 of 1 reached")
	d.fails(exitNotFound, "there is no rule", "alert", "test", "none", "--config", file)
}

func TestAlert(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.has(d.ok("alert", "ls"), "Nothing fires")
	d.fails(exitNotFound, "nobody evaluates", "alert", "alive")
	now := time.Now()
	write := func(name string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		w := driver.Write{Name: name, Data: data}
		if r := d.driver.KV().Apply(t.Context(), cluster.LeadBucket(alert.Duty), driver.KVOptions{}, w)[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	write("state/deep/orders/billing", alert.Alert{Rule: "deep", Subject: "orders/billing", Severity: alert.Critical,
		Status: alert.Firing, Since: now, Fired: now, Notices: 1, Text: "too much waits\x1b[2J\nscale out"})
	write("beat", alert.Beat{At: now, Every: time.Hour, Rules: 3})

	d.has(d.ok("alert", "alive"), "3 rules were evaluated")
	d.has(d.ok("alert", "ack", "deep", "orders/billing", "--who", "li"), "li takes care of deep")
	d.has(d.ok("alert", "ls"), "deep", "orders/billing", "critical", "firing", "li", "too much waits")
	d.has(d.ok("alert", "history", "--output", "json"), `"what": "acknowledged"`)
	d.has(d.ok("alert", "show", "deep", "orders/billing"), "is firing, critical", `too much waits\x1b[2J`,
		"\n    scale out\n", "acknowledged li")
	d.has(d.ok("alert", "show", "deep", "orders/billing", "--output", "json"), `"history"`, `"acknowledged": "li"`)
	d.fails(exitNotFound, "does not fire", "alert", "show", "deep", "other")
	d.fails(exitNotFound, "does not fire", "alert", "ack", "deep", "other", "--who", "li")

	d.ok("alert", "silence", "2h", "--rule", "deep*", "--comment", "deployment")
	d.has(d.ok("alert", "silences"), "deep*", "deployment")
	d.fails(exitUsage, "cannot be read", "alert", "silence", "soon")
	d.fails(exitNotFound, "there is no silence", "alert", "unsilence", "none")
}

func TestAlertFiles(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text("rules:\n  - {name: a, when: queue_depth > 7, promql: up > 7}\n")
	d.has(d.ok("alert", "check", file), "1 rules, nothing is wrong")
	d.has(d.ok("alert", "prometheus", file), `alert: "a"`, `expr: "up > 7"`)
	d.has(d.ok("alert", "prometheus"), "队列积压告警")
	text("rules:\n  - {name: a, when: error_rate > 7}\n")
	d.fails(exitUsage, "can never fire", "alert", "check", file)
	d.fails(exitUsage, "cannot be read", "alert", "check", filepath.Join(t.TempDir(), "none"))
}
