package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Usage is not known: a Kafka client is not told what its brokers use.
func (d *Driver) Usage(ctx context.Context) (driver.Usage, error) {
	if d.isClosed() {
		return driver.Usage{}, errClosed()
	}
	return driver.Usage{}, ctx.Err()
}
