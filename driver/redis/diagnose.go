package redis

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// idWindow is how long a producer's own id is remembered at least, after its message is gone.
const idWindow = 60 * time.Second

// Diagnose looks at the server again and says what it finds.
func (d *Driver) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	s, err := redisconn.Examine(ctx, d.client, registryKey(d.o.Prefix))
	if err != nil {
		return nil, err
	}
	return s.Findings(), nil
}

// examine finds out what the server can do, refuses one that cannot work, and warns about one that may lose messages.
func (d *Driver) examine(ctx context.Context) error {
	var err error
	if d.survey, err = redisconn.NewSurvey(ctx, d.client, registryKey(d.o.Prefix), d.o.Strict, d.o.Logger); err != nil {
		return err
	}
	s := d.survey.Opened()
	d.scripts = newScripts(s.Flags())
	d.caps = driver.Capabilities{
		Driver:         "redis",
		LeaseScope:     driver.LeasePerMessage,
		MinLease:       time.Second,
		DefaultLease:   10 * time.Second,
		KeyedPriority:  driver.PriorityEverywhere,
		Parallel:       driver.ParallelUnbounded,
		Dedup:          driver.DedupExact,
		IDWindow:       idWindow,
		Bound:          driver.BoundPerShard,
		AtomicPublish:  driver.AtomicPerShard,
		AtomicEmit:     driver.AtomicPerShard,
		Counts:         driver.CountsExact,
		GetByID:        driver.LookupIndexed,
		PhysicalDelete: true,
		History:        driver.HistoryNone,
		Durability:     s.Level(),
		Levels:         s.Levels(),
		MaxBody:        d.o.MaxBody,
	}
	return nil
}
