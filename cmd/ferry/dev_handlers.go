package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// bill handles an order. A paid one causes a mail, in the same step as its acknowledgement.
func (d *demo) bill(ctx context.Context, m *ferry.Msg[demoOrder]) error {
	if err := work(ctx, 5, m.Value.Number); err != nil {
		return err
	}
	if m.Value.Address == "" {
		return worker.Fatal(fmt.Errorf("order %d has no address (收货地址为空)", m.Value.Number))
	}
	if err := trouble(billing, m.Value.Number, m.Delivery); err != nil {
		return err
	}
	if !m.Value.WantMail {
		return nil
	}
	mail := demoMail{Number: m.Value.Number / 5, To: m.Value.Customer,
		Subject: fmt.Sprintf("Order %d is paid", m.Value.Number)}
	wait := time.Duration(2+m.Value.Number%3) * time.Second
	return worker.Emit(ctx, demoMails, mail, ferry.Delay(wait), ferry.Priority(ferry.High))
}

func (d *demo) send(ctx context.Context, m *ferry.Msg[demoMail]) error {
	if err := work(ctx, 20, m.Value.Number); err != nil {
		return err
	}
	return trouble(smtp, m.Value.Number, m.Delivery)
}

// report handles a report, and schedules the next one together with its own acknowledgement.
func (d *demo) report(ctx context.Context, m *ferry.Msg[demoReport]) error {
	next := nextReport(m.Value.Due)
	return worker.Emit(ctx, demoReports, next, ferry.At(next.Due), ferry.ID(next.id()))
}

// work takes a few milliseconds, as real handlers do.
func work(ctx context.Context, least, number int) error {
	timer := time.NewTimer(time.Duration(least+number*7%20) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// service is somebody else's system, with its ways to fail.
type service struct {
	slow  string // passes when tried again
	busy  string // passes after a while
	wrong string // never passes, until somebody mends the message; what is wrong with an order its own handler finds
	no    string // never passes
}

var (
	billing = service{
		slow: "timeout to billing at 10.0.4.%d:8443",
		busy: "billing answered 503, request %d",
		no:   "card declined for order %d: insufficient funds",
	}
	smtp = service{
		slow:  "smtp: connection reset after %d bytes",
		busy:  "smtp: 451 greylisted, mail %d",
		wrong: "模板 order-paid 缺少字段 %d",
		no:    "smtp: 550 no such mailbox, mail %d",
	}
)

// outage is how long a service is away for messages that only tries show to be dead. Whoever replays one later
// succeeds.
const outage = 20 * time.Second

// trouble makes three of a hundred messages fail: one passes at the second attempt, one at the third, and one dies.
func trouble(s service, number int, d *ferry.Delivery) error {
	switch number % 100 {
	case 17:
		if d.Attempt < 2 {
			return fmt.Errorf(s.slow, number)
		}
	case 42:
		if d.Attempt < 3 {
			return worker.RetryAfter(fmt.Errorf(s.busy, number), time.Second)
		}
	}
	switch never(number) {
	case refused:
		return worker.Dead("rejected", fmt.Errorf(s.no, number))
	case unmended:
		if s.wrong != "" {
			return worker.Fatal(fmt.Errorf(s.wrong, number))
		}
	case away:
		if time.Since(d.PublishedAt) < outage {
			return fmt.Errorf(s.slow, number)
		}
	}
	return nil
}

// death is why a message dies.
type death int

// A message that dies says so with a reason of its own, has to be mended, or came while a service was away.
const (
	lives death = iota
	refused
	unmended
	away
)

// never is why a message dies: one of a hundred does, in turn.
func never(number int) death {
	if number%100 != 73 {
		return lives
	}
	return refused + death(number/100%3)
}
