package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Usage is not known: a Kafka client is not told what its brokers use.
func (d *Driver) Usage(ctx context.Context) (driver.Usage, error) {
	if d.cluster.IsClosed() {
		return driver.Usage{}, refusal.Closed()
	}
	return driver.Usage{}, ctx.Err()
}
