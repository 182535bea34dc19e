package driver

import "time"

// Extent says how far a capability reaches. Each field of Capabilities lists the values it may have.
type Extent string

// Extents.
const (
	None           Extent = "none"
	PerMessage     Extent = "message"
	PerPartition   Extent = "partition"
	PerShard       Extent = "shard"
	PerTopic       Extent = "topic"
	Everything     Extent = "all"
	Exact          Extent = "exact"
	Estimate       Extent = "estimate"
	FetchWindow    Extent = "fetch window"
	Session        Extent = "producer session"
	Transaction    Extent = "transaction"
	Index          Extent = "index"
	Scan           Extent = "scan"
	RetainedOnly   Extent = "retained"
	UnlimitedRange Extent = "unlimited"
)

// Capabilities say what a driver can do. What it cannot do fails with ErrUnsupported; nothing is silently ignored.
// Uniform everywhere, and therefore not listed: key order, never early, retry per message and group, conservation
// of dead letters, release to the head, the two counters.
type Capabilities struct {
	// Driver is its name: the scheme of its URL.
	Driver string
	// LeaseScope: PerMessage or PerPartition.
	LeaseScope Extent
	// MinLease and DefaultLease bound SubscribeOptions.Lease.
	MinLease, DefaultLease time.Duration
	// KeyedPriority is how far priorities reach among messages with keys: Everything or FetchWindow.
	KeyedPriority Extent
	// Parallel is how many instances of a group can work at once: Everything (any number) or PerPartition.
	Parallel Extent
	// Dedup is how exact publish deduplication is: Exact, PerPartition, or Session.
	Dedup Extent
	// IDWindow is how long an id that a producer chose is remembered.
	IDWindow time.Duration
	// Bound is where TopicConfig.MaxMessages is enforced: PerTopic, PerShard, PerPartition, or Estimate.
	Bound Extent
	// AtomicPublish and AtomicEmit: Everything, PerShard, PerPartition, Transaction, or None.
	AtomicPublish, AtomicEmit Extent
	// Counts in Stats: Exact or Estimate.
	Counts Extent
	// GetByID: Index, or Scan (bounded, with a time hint).
	GetByID Extent
	// PhysicalDelete: a deleted message is gone from the backend, not only marked.
	PhysicalDelete bool
	// History is how far back a group may start or be reset: None, RetainedOnly (TopicConfig.Keep), or UnlimitedRange.
	History Extent
	// Durability is the level of a publish that asks for none. Levels are all that can be asked for.
	Durability Durability
	Levels     []Durability
	// MaxBody is the largest body in bytes.
	MaxBody int
	// Local says that a publish waits for neither a network nor a disk, so that gathering callers into batches gains nothing.
	Local bool
}

// Gives reports whether a publish may ask for level.
func (c Capabilities) Gives(level Durability) bool {
	if level == 0 {
		return true
	}
	for _, l := range c.Levels {
		if l == level {
			return true
		}
	}
	return false
}
