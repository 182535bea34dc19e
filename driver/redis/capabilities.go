package redis

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// idWindow is how long a producer's own id is remembered at least, after its message is gone.
const idWindow = 60 * time.Second

// adapt notes what the server can do.
func (d *Driver) adapt(s *redisconn.Server) {
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
}
