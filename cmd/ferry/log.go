package main

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// log returns what only a driver with a log can do, for a topic that exists.
func (s session) log(ctx context.Context, topic string) (driver.Log, error) {
	if _, err := s.driver.Stats(ctx, topic); err != nil {
		return nil, err
	}
	l, ok := s.driver.(driver.Log)
	if !ok {
		return nil, driver.NewError(driver.ErrUnsupported, fmt.Sprintf("the %s driver keeps no log", s.driver.Capabilities().Driver), "use a redisstream:// or kafka:// broker", nil)
	}
	return l, nil
}
