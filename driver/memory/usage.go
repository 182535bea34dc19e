package memory

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/driver"
)

// Usage adds up the bodies of all topics. What the process needs to keep them comes on top.
func (d *Driver) Usage(ctx context.Context) (driver.Usage, error) {
	topics, err := d.Topics(ctx)
	if err != nil {
		return driver.Usage{}, err
	}
	var u driver.Usage
	for _, t := range topics {
		s, err := d.Stats(ctx, t.Topic)
		if errors.Is(err, driver.ErrNotFound) {
			continue // deleted since
		}
		if err != nil {
			return driver.Usage{}, err
		}
		u.Memory += s.Bytes
	}
	return u, nil
}
