package ours

import (
	"context"
	"errors"
	"sync"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/driver"
)

const (
	// bareLoops claim and settle at once, each with one request under way: as many as the raw limits have readers.
	bareLoops = 4
	bareBatch = 100
)

// consumeBare claims, handles and acknowledges batch after batch, with the driver's subscription alone.
func (s *session) consumeBare(ctx context.Context, h system.Handler) (system.Consumer, error) {
	sub, err := s.broker.Driver().Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "bench"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &bareConsumer{sub: sub, cancel: cancel, errs: make([]error, bareLoops)}
	for i := range bareLoops {
		c.running.Go(func() { c.errs[i] = c.loop(ctx, h) })
	}
	return c, nil
}

type bareConsumer struct {
	sub     driver.Subscription
	cancel  context.CancelFunc
	running sync.WaitGroup
	errs    []error
}

func (c *bareConsumer) loop(ctx context.Context, h system.Handler) error {
	var settlements []driver.Settlement
	for {
		ds, err := c.sub.Receive(ctx, bareBatch)
		if ctx.Err() != nil {
			return nil // what a claim took meanwhile is released by Stop
		}
		if err != nil {
			return err
		}
		settlements = settlements[:0]
		for _, d := range ds {
			if err := h(d.Body); err != nil {
				return err
			}
			settlements = append(settlements, driver.Settlement{Delivery: d, Outcome: driver.Ack})
		}
		if err := errors.Join(c.sub.Settle(ctx, settlements)...); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (c *bareConsumer) Stop(ctx context.Context) error {
	c.cancel()
	c.running.Wait()
	return errors.Join(errors.Join(c.errs...), c.sub.Close(ctx))
}
