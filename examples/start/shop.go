package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/worker"
)

// Order is what a customer buys.
type Order struct {
	ID       int    `json:"id"`
	Customer string `json:"customer"`
}

type shop struct {
	print   func(line string)
	closing func()
}

func (s *shop) worker(b *ferry.Broker) *worker.Worker {
	w := worker.New(b, worker.Options{Concurrency: 16})
	worker.Handle(w, "orders", s.bill, worker.MaxAttempts(3), worker.Retry(ferry.Delays(500*time.Millisecond)))
	worker.Handle(w, "mails", s.mail)
	return w
}

// bill fails once for order 1, and always for order 3.
func (s *shop) bill(_ context.Context, m *ferry.Msg[Order]) error {
	switch {
	case m.Value.ID == 1 && m.Attempt == 1:
		return errors.New("timeout to billing") // tried again half a second later
	case m.Value.ID == 3:
		return worker.Fatal(errors.New("card declined")) // a dead letter at once
	}
	s.print(fmt.Sprintf("order %d of %s is billed, attempt %d", m.Value.ID, m.Value.Customer, m.Attempt))
	return nil
}

func (s *shop) mail(_ context.Context, m *ferry.Msg[string]) error {
	s.print("mail: " + m.Value)
	s.closing()
	return nil
}
