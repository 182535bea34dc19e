package redisstream

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Usage tells what the primaries use, for whoever uses them.
func (d *Driver) Usage(ctx context.Context) (driver.Usage, error) {
	if err := d.open(); err != nil {
		return driver.Usage{}, err
	}
	u, err := redisconn.Usage(ctx, d.client)
	return u, redisconn.Classify(err)
}
