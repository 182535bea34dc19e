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

// capabilitiesAreKnownWords checks that each field has one of the values its comment lists.
func capabilitiesAreKnownWords(t *T) {
	c := t.Caps
	atomic := []driver.Extent{driver.Everything, driver.PerShard, driver.PerPartition, driver.Transaction, driver.None}
	for _, f := range []struct {
		field string
		value driver.Extent
		known []driver.Extent
	}{
		{"LeaseScope", c.LeaseScope, []driver.Extent{driver.PerMessage, driver.PerPartition}},
		{"KeyedPriority", c.KeyedPriority, []driver.Extent{driver.Everything, driver.FetchWindow}},
		{"Parallel", c.Parallel, []driver.Extent{driver.Everything, driver.PerPartition}},
		{"Dedup", c.Dedup, []driver.Extent{driver.Exact, driver.PerPartition, driver.Session}},
		{"Bound", c.Bound, []driver.Extent{driver.PerTopic, driver.PerShard, driver.PerPartition, driver.Estimate}},
		{"AtomicPublish", c.AtomicPublish, atomic},
		{"AtomicEmit", c.AtomicEmit, atomic},
		{"Counts", c.Counts, []driver.Extent{driver.Exact, driver.Estimate}},
		{"GetByID", c.GetByID, []driver.Extent{driver.Index, driver.Scan}},
		{"History", c.History, []driver.Extent{driver.None, driver.RetainedOnly, driver.UnlimitedRange}},
	} {
		if !slices.Contains(f.known, f.value) {
			t.Errorf("%s is %q, want one of %q", f.field, f.value, f.known)
		}
	}
	if c.MinLease <= 0 || c.DefaultLease < c.MinLease || c.MaxBody <= 0 {
		t.Errorf("MinLease %v, DefaultLease %v, MaxBody %d make no sense", c.MinLease, c.DefaultLease, c.MaxBody)
	}
	if !slices.Contains(c.Levels, c.Durability) {
		t.Errorf("Durability %s is not one of the levels %v", c.Durability, c.Levels)
	}
}
