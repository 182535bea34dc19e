// Package memory is the broker inside the process, without storage: the reference of all drivers.
//
// It has every feature with exact semantics, runs in virtual time under testing/synctest, and has no goroutine while
// it is idle. What it holds is lost with the process.
package memory

import (
	"cmp"
	"context"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/engine"
)

// Options of a Driver. The zero value is ready to use.
type Options struct {
	// MaxBody is the largest body in bytes. Defaults to 4 MiB.
	MaxBody int
	// MaxMessages bounds what is held in all topics together, dead letters and kept messages included; beyond it
	// publishing answers ErrFull. Defaults to 10 million.
	MaxMessages int64
	// Broker are the options of the Broker that Open returns.
	Broker ferry.Options
}

// Defaults of Options.
const (
	DefaultMaxBody     = 4 << 20
	DefaultMaxMessages = 10_000_000
)

// Driver is a broker in memory. All its methods come from the engine.
type Driver struct{ *broker }

// broker keeps the embedded engine out of the documentation and out of reach.
type broker = engine.Engine

var _ driver.Driver = (*Driver)(nil)

// New returns an empty broker. Close it when it is no longer used. There is nothing to wait for: the context is there
// because every driver is made alike.
func New(_ context.Context, o Options) (*Driver, error) {
	if o.MaxBody < 0 || o.MaxMessages < 0 {
		return nil, driver.NewError(driver.ErrInvalid, "an option of the memory broker is negative",
			"leave it zero for the default", nil)
	}
	c := engine.Capabilities("memory", cmp.Or(o.MaxBody, DefaultMaxBody), driver.InMemory, driver.InMemory)
	c.Local = true
	most := cmp.Or(o.MaxMessages, DefaultMaxMessages)
	return &Driver{engine.New(engine.Options{Capabilities: c, MaxMessages: most})}, nil
}

// Diagnose says what the process itself cannot promise.
func (d *Driver) Diagnose(context.Context) ([]driver.Finding, error) {
	return []driver.Finding{{
		Severity: driver.SeverityWarning, Subject: "durability",
		Text: "messages live in this process and end with it",
		Hint: "use another broker for messages that must survive a restart",
	}}, nil
}
