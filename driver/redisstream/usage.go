package redisstream

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Usage tells what the primaries use, for whoever uses them.
func (d *Driver) Usage(ctx context.Context) (driver.Usage, error) { return d.shell.Usage(ctx) }

// Diagnose looks at the server again and says what it finds.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	return d.shell.Diagnose(ctx)
}
