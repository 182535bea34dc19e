package kafka

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// KV holds named values. This driver holds none yet: every call is refused.
func (d *Driver) KV() driver.KV { return noValues{} }

// noValues refuses every call, so that what needs named values fails when it starts.
type noValues struct{}

// errNoValues is what it answers.
var errNoValues = driver.NewError(driver.ErrUnsupported, "the kafka driver holds no named values",
	"keep members, locks, schedules and results on a redis://, redisstream:// or disk:// broker", nil)

func (noValues) Get(context.Context, string, ...string) ([]driver.Value, error) {
	return nil, errNoValues
}

func (noValues) List(context.Context, driver.KVQuery) (driver.KVPage, error) {
	return driver.KVPage{}, errNoValues
}

func (noValues) Apply(_ context.Context, _ string, _ driver.KVOptions, ws ...driver.Write) []driver.WriteResult {
	results := make([]driver.WriteResult, len(ws))
	for i := range results {
		results[i].Err = errNoValues
	}
	return results
}

func (noValues) Wait(context.Context, string, string, uint64) (driver.Value, error) {
	return driver.Value{}, errNoValues
}

func (noValues) Changes(context.Context, string, uint64) ([]driver.Value, uint64, error) {
	return nil, 0, errNoValues
}
