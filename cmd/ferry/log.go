package main

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// log returns what only a driver with a log can do, for a topic that exists.
func (s session) log(ctx context.Context, topic string) (driver.Log, error) {
	if _, err := s.driver.Stats(ctx, topic); err != nil {
		return nil, err
	}
	return s.broker.Log()
}
