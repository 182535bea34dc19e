package memory

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/engine"
)

// Usage adds up the bodies of all topics. What the process needs to keep them comes on top.
func (d *Driver) Usage(context.Context) (driver.Usage, error) {
	bytes, err := engine.Bytes(d.broker)
	return driver.Usage{Memory: bytes}, err
}
