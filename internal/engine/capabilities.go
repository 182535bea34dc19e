package engine

import (
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Capabilities are what every driver over an engine promises, for messages that are as safe as it says.
func Capabilities(name string, maxBody int, d driver.Durability, levels ...driver.Durability) driver.Capabilities {
	return driver.Capabilities{
		Driver:         name,
		LeaseScope:     driver.LeasePerMessage,
		MinLease:       time.Second,
		DefaultLease:   10 * time.Second,
		KeyedPriority:  driver.PriorityEverywhere,
		Parallel:       driver.ParallelUnbounded,
		Dedup:          driver.DedupExact,
		IDWindow:       60 * time.Second,
		Bound:          driver.BoundPerTopic,
		AtomicPublish:  driver.AtomicEverywhere,
		AtomicEmit:     driver.AtomicEverywhere,
		Counts:         driver.CountsExact,
		GetByID:        driver.LookupIndexed,
		PhysicalDelete: true,
		History:        driver.HistoryKept,
		Endings:        true,
		Durability:     d,
		Levels:         levels,
		MaxBody:        maxBody,
	}
}

// Capabilities returns what the driver above promises.
func (e *Engine) Capabilities() driver.Capabilities {
	c := e.o.Capabilities
	c.Levels = slices.Clone(c.Levels)
	return c
}
