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
	if err := trouble(billing, m.Value.Number, m.Attempt); err != nil {
		return err
	}
	if !m.Value.WantMail {
		return nil
	}
	mail := demoMail{Number: m.Value.Number / 5, To: m.Value.Customer, Subject: fmt.Sprintf("Order %d is paid", m.Value.Number)}
	wait := time.Duration(2+m.Value.Number%3) * time.Second
	return worker.Emit(ctx, demoMails, mail, ferry.Delay(wait), ferry.Priority(ferry.High))
}

func (d *demo) send(ctx context.Context, m *ferry.Msg[demoMail]) error {
	if err := work(ctx, 20, m.Value.Number); err != nil {
		return err
	}
	return trouble(smtp, m.Value.Number, m.Attempt)
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
	slow  string   // passes when tried again
	busy  string   // passes after a while
	fatal []string // never pass
}

var (
	billing = service{
		slow:  "timeout to billing at 10.0.4.%d:8443",
		busy:  "billing answered 503, request %d",
		fatal: []string{"card declined for order %d: insufficient funds", "订单 %d 的收货地址无法解析", "timeout to billing at 10.0.4.%d:8443"},
	}
	smtp = service{
		slow:  "smtp: connection reset after %d bytes",
		busy:  "smtp: 451 greylisted, mail %d",
		fatal: []string{"smtp: 550 no such mailbox, mail %d", "模板 order-paid 缺少字段 %d"},
	}
)

// trouble makes three of a hundred messages fail: one passes at the second attempt, one at the third, and one never.
func trouble(s service, number, attempt int) error {
	switch number % 100 {
	case 17:
		if attempt < 2 {
			return fmt.Errorf(s.slow, number)
		}
	case 42:
		if attempt < 3 {
			return worker.RetryAfter(fmt.Errorf(s.busy, number), time.Second)
		}
	case 73:
		return s.never(number)
	}
	return nil
}

// never returns an error that stays: one that says so, one with a reason of its own, or one that only tries show.
func (s service) never(number int) error {
	turn := number / 100
	err := fmt.Errorf(s.fatal[turn%len(s.fatal)], number)
	switch turn % 3 {
	case 0:
		return worker.Dead("rejected", err)
	case 1:
		return worker.Fatal(err)
	}
	return err
}
