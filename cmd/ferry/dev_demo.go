package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// What travels through the demo.
type (
	demoOrder struct {
		Number   int    `json:"number"`
		Customer string `json:"customer"`
		Address  string `json:"address"`
		Cents    int    `json:"cents"`
		WantMail bool   `json:"want_mail"`
	}
	demoMail struct {
		Number  int    `json:"number"`
		To      string `json:"to"`
		Subject string `json:"subject"`
	}
	demoReport struct {
		Due time.Time `json:"due"`
	}
)

var demoCustomers = [...]string{"王小明", "李娜", "Ada", "张伟", "Grace", "陈静", "Linus", "赵磊", "Margaret", "刘洋", "Ken", "周敏"}

// demoAddresses are those of the customers.
var demoAddresses = [len(demoCustomers)]string{"南京路 1 号", "人民路 20 号", "12 Byron Street", "长安街 8 号", "1 Compiler Way",
	"中山路 33 号",
	"7 Kernel Lane", "解放路 5 号", "11 Apollo Road", "文化路 9 号", "6 Unix Square", "建设路 2 号"}

// The topics of the demo. Their names are its own, so that it never touches what somebody else published.
const (
	demoOrders  = "demo.orders"
	demoMails   = "demo.mails"
	demoReports = "demo.reports"
)

const (
	demoTick    = 10 * time.Millisecond
	reportEvery = 10 * time.Second
	demoKeep    = 10 * time.Minute // orders that are done are seen for so long, where the broker keeps any
)

// demo is a small shop: orders, the mails they cause, and a report on a schedule.
type demo struct {
	broker *ferry.Broker
	rate   float64 // orders per second
	random *rand.Rand
}

func newDemo(b *ferry.Broker, rate float64) *demo {
	return &demo{broker: b, rate: rate, random: rand.New(rand.NewPCG(1, 2))} // the same shop each time
}

// run publishes and handles until ctx ends, and returns when the handlers have finished.
func (d *demo) run(ctx context.Context) error {
	// which has no room for them
	if can := d.broker.Driver().Capabilities(); can.History == driver.HistoryKept && can.Durability != driver.InMemory {
		if err := d.broker.Driver().EnsureTopic(ctx, demoOrders, ferry.TopicConfig{Keep: demoKeep}); err != nil &&
			ctx.Err() == nil {
			return err
		}
	}
	w := worker.New(d.broker, worker.Options{Concurrency: 64})
	retries := []worker.HandlerOption{worker.MaxAttempts(3),
		worker.Retry(ferry.Delays(500*time.Millisecond, 2*time.Second))}
	worker.Handle(w, demoOrders, d.bill, retries...)
	worker.Handle(w, demoMails, d.send, retries...)
	worker.Handle(w, demoReports, d.report, retries...)
	member, err := cluster.Join(d.broker, cluster.Options{Name: "demo", Workers: []*worker.Worker{w}})
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	var shopErr, memberErr error
	group.Go(func() {
		defer cancel()
		shopErr = d.shop(ctx)
	})
	group.Go(func() { memberErr = member.Run(ctx) }) // operators see the worker, and can have it obey
	workErr := w.Run(ctx)
	cancel()
	group.Wait()
	return errors.Join(shopErr, workErr, memberErr)
}

// shop publishes orders at the rate asked for, and a mail of its own with every twentieth.
func (d *demo) shop(ctx context.Context) error {
	if err := d.startReports(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(demoTick)
	defer ticker.Stop()
	begin, number := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for due := int(time.Since(begin).Seconds() * d.rate); number < due; {
			number++
			err := d.order(ctx, number)
			if number%20 == 0 && err == nil {
				err = d.newsletter(ctx, number)
			}
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, ferry.ErrFull): // customers come again
			case err != nil:
				return err
			}
		}
	}
}

func (d *demo) order(ctx context.Context, number int) error {
	i := d.random.IntN(len(demoCustomers))
	order := demoOrder{Number: number, Customer: demoCustomers[i], Address: demoAddresses[i],
		Cents: 100 + d.random.IntN(50_000), WantMail: number%5 == 0}
	if never(number) == unmended {
		order.Address = ""
	}
	_, err := ferry.Publish(ctx, d.broker, demoOrders, order, ferry.Key(fmt.Sprintf("customer-%d", i)))
	return err
}

// newsletter is a mail that no order caused. It may wait behind all others, except that now and then somebody forgot
// a password, and that may not.
func (d *demo) newsletter(ctx context.Context, number int) error {
	mail, lane := demoMail{Number: number, To: "everybody", Subject: "本周新品"}, ferry.Low
	if number%60 == 0 {
		mail, lane = demoMail{Number: number, To: "somebody", Subject: "Reset your password"}, ferry.Urgent
	}
	wait := time.Second + time.Duration(d.random.IntN(3000))*time.Millisecond
	_, err := ferry.Publish(ctx, d.broker, demoMails, mail, ferry.Priority(lane), ferry.Delay(wait))
	return err
}

// startReports publishes the first report; each one schedules the next. Its id makes sure that there is one of each.
func (d *demo) startReports(ctx context.Context) error {
	first := nextReport(time.Now())
	_, err := ferry.Publish(ctx, d.broker, demoReports, first, ferry.At(first.Due), ferry.ID(first.id()))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func nextReport(now time.Time) demoReport {
	return demoReport{Due: now.Truncate(reportEvery).Add(reportEvery)}
}

func (r demoReport) id() string { return "report-" + r.Due.UTC().Format(time.RFC3339) }
