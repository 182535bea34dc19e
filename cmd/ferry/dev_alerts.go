package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/alert"
	"github.com/ferrymq/ferry/notify"
)

// demoNotices is the topic of the demo's notifications.
const demoNotices = "demo.notices"

// demoRule fires when billing fails, which it does every five seconds or so, and resolves when the orders went through.
var demoRule = alert.Rule{Name: "orders are tried again", When: "waiting > threshold", Severity: alert.Warning,
	Cooldown: 30 * time.Second, Topics: []string{demoOrders},
	Text: "{waiting:d} of {topic} failed and wait for another try"}

// demoAlerts watch the demo, and tell of it on the terminal.
type demoAlerts struct {
	notices
	lines chan string // for the terminal, which one goroutine writes to
}

func newDemoAlerts(b *ferry.Broker) (*demoAlerts, error) {
	d := &demoAlerts{lines: make(chan string)}
	hub, err := notify.New(b, notify.Options{Topic: demoNotices,
		Channels: map[string]notify.Channel{"terminal": notify.Func(d.print)}})
	if err != nil {
		return nil, err
	}
	d.hub = hub
	d.watch, err = newWatch(b, hub, alert.Options{Rules: []alert.Rule{demoRule}, Every: time.Second,
		Channels: map[string][]notify.Target{"terminal": {{Channel: "terminal", To: "here"}}}})
	return d, err
}

// print hands a notice to whoever draws.
func (d *demoAlerts) print(ctx context.Context, r notify.Rendered) (notify.Sent, error) {
	select {
	case d.lines <- r.Title + ": " + strings.ReplaceAll(r.Body, "\n", " "):
		return notify.Sent{}, nil
	case <-ctx.Done():
		return notify.Sent{}, context.Cause(ctx)
	}
}

// run evaluates and sends until ctx ends.
func (d *demoAlerts) run(ctx context.Context) error {
	duties := d.duties()
	errs := make([]error, len(duties))
	var group sync.WaitGroup
	for i, one := range duties {
		group.Go(func() { errs[i] = one.run(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}
