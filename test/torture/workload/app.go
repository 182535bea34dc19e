package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// runApp publishes and consumes in one process, which owns the broker.
func (s Settings) runApp(ctx context.Context, h Host) error {
	for _, group := range s.Groups { // before the first publish, so that each group gets everything
		err := h.Broker.Driver().EnsureGroup(ctx, s.Topic, group, driver.GroupOptions{})
		if ctx.Err() != nil {
			return nil // told to end before it began
		}
		if err != nil {
			return err
		}
	}
	publishing, rest := context.WithCancel(ctx)
	defer rest()
	consuming, end := context.WithCancel(ctx)
	defer end()
	var producers, consumers sync.WaitGroup
	errs := make([]error, 2+max(s.Workers, 1))
	producers.Go(func() { errs[0] = (&Producer{Settings: s, Host: h}).Run(publishing) })
	for n := range max(s.Workers, 1) {
		c := &Consumer{Settings: s, Host: h}
		c.Instance = fmt.Sprintf("%s-%d", h.Instance, n+1)
		consumers.Go(func() { errs[2+n] = c.Run(consuming) })
	}
	select {
	case <-ctx.Done():
	case <-h.Drain:
		rest()
		producers.Wait()
		errs[1] = drained(ctx, h.Broker.Driver(), s.Topic, s.Groups)
	}
	end()
	producers.Wait()
	consumers.Wait()
	return errors.Join(errs...)
}

// drained waits until nothing is left to do, or ctx ends.
func drained(ctx context.Context, d driver.Driver, topic string, groups []string) error {
	for ctx.Err() == nil {
		s, err := d.Stats(ctx, topic)
		if err != nil {
			return fmt.Errorf("while draining: %w", err)
		}
		if Left(s, groups) == 0 {
			return nil
		}
		pause(ctx, 20*time.Millisecond)
	}
	return nil
}

// Left is how much of a topic is not settled in these groups, dead letters not counted.
func Left(s driver.TopicStats, groups []string) int64 {
	left := s.Delayed
	for _, g := range s.Groups {
		if slices.Contains(groups, g.Group) {
			left += g.Ready + g.Inflight + g.Waiting
		}
	}
	return left
}
