package drivertest

import (
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// capabilitiesArePinned compares every field with what the harness wants.
func capabilitiesArePinned(t *T) {
	t.equal(t.Caps, t.Want, "capabilities")
	t.equal(t.Capabilities(), t.Caps, "capabilities asked for again")
}

// capabilitiesAreKnownWords checks that each field has one of the words of its type.
func capabilitiesAreKnownWords(t *T) {
	c := t.Caps
	isOneOf(t, "LeaseScope", c.LeaseScope, driver.LeasePerMessage, driver.LeasePerPartition)
	isOneOf(t, "KeyedPriority", c.KeyedPriority, driver.PriorityEverywhere, driver.PriorityInFetchWindow)
	isOneOf(t, "Parallel", c.Parallel, driver.ParallelUnbounded, driver.ParallelPerPartition)
	isOneOf(t, "Dedup", c.Dedup, driver.DedupExact, driver.DedupPerPartition, driver.DedupPerSession)
	isOneOf(t, "Bound", c.Bound, driver.BoundPerTopic, driver.BoundPerShard, driver.BoundPerPartition,
		driver.BoundEstimated)
	for field, value := range map[string]driver.Atomicity{"AtomicPublish": c.AtomicPublish, "AtomicEmit": c.AtomicEmit} {
		isOneOf(t, field, value, driver.AtomicEverywhere, driver.AtomicPerShard, driver.AtomicPerPartition,
			driver.AtomicTransaction, driver.AtomicNever)
	}
	isOneOf(t, "Counts", c.Counts, driver.CountsExact, driver.CountsEstimated)
	isOneOf(t, "GetByID", c.GetByID, driver.LookupIndexed, driver.LookupScans)
	isOneOf(t, "History", c.History, driver.HistoryNone, driver.HistoryKept, driver.HistoryUnlimited)
	if c.MinLease <= 0 || c.DefaultLease < c.MinLease || c.MaxBody <= 0 {
		t.Errorf("MinLease %v, DefaultLease %v, MaxBody %d make no sense", c.MinLease, c.DefaultLease, c.MaxBody)
	}
	if !slices.Contains(c.Levels, c.Durability) {
		t.Errorf("Durability %s is not one of the levels %v", c.Durability, c.Levels)
	}
}

func isOneOf[W ~string](t *T, field string, value W, known ...W) {
	if !slices.Contains(known, value) {
		t.Errorf("%s is %q, want one of %q", field, value, known)
	}
}
