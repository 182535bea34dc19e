package driver

import (
	"fmt"
	"time"
)

// Each capability that reaches more or less far has a type of its own, so that the word of one is not taken for that of
// another.
type (
	// LeaseScope is what a lease is for.
	LeaseScope string
	// PriorityReach is among which messages with keys priorities are compared.
	PriorityReach string
	// Parallelism is how many instances of a group can work at once.
	Parallelism string
	// DedupScope is within which bounds a duplicate is recognised.
	DedupScope string
	// BoundScope is where the bounds of a topic are enforced.
	BoundScope string
	// Atomicity is which messages can be stored in one step.
	Atomicity string
	// Counting is how true counts are.
	Counting string
	// Lookup is how a message is found by its id.
	Lookup string
	// HistoryReach is how far back a group may start or be reset.
	HistoryReach string
)

// The words of each.
const (
	LeasePerMessage   LeaseScope = "message"
	LeasePerPartition LeaseScope = "partition" // all leases of a partition end together

	PriorityEverywhere    PriorityReach = "all"
	PriorityInFetchWindow PriorityReach = "fetch window" // among what has been fetched

	ParallelUnbounded    Parallelism = "all" // any number
	ParallelPerPartition Parallelism = "partition"

	DedupExact        DedupScope = "exact"
	DedupPerPartition DedupScope = "partition"
	DedupPerSession   DedupScope = "producer session"

	BoundPerTopic     BoundScope = "topic"
	BoundPerShard     BoundScope = "shard"
	BoundPerPartition BoundScope = "partition"
	BoundEstimated    BoundScope = "estimate"

	AtomicEverywhere   Atomicity = "all"
	AtomicPerShard     Atomicity = "shard"
	AtomicPerPartition Atomicity = "partition"
	AtomicTransaction  Atomicity = "transaction"
	AtomicNever        Atomicity = "none"

	CountsExact     Counting = "exact"
	CountsEstimated Counting = "estimate"

	LookupIndexed Lookup = "index"
	LookupScans   Lookup = "scan" // bounded, with a time hint

	HistoryNone      HistoryReach = "none"
	HistoryKept      HistoryReach = "retained" // by TopicConfig.Keep
	HistoryUnlimited HistoryReach = "unlimited"
)

// Capabilities say what a driver can do. What it cannot do fails with ErrUnsupported; nothing is silently ignored.
// Uniform everywhere, and therefore not listed: key order, never early, retry per message and group, conservation
// of dead letters, release to the head, the two counters.
type Capabilities struct {
	// Driver is its name: the scheme of its URL.
	Driver     string
	LeaseScope LeaseScope
	// MinLease and DefaultLease bound SubscribeOptions.Lease.
	MinLease, DefaultLease time.Duration
	// KeyedPriority is how far priorities reach among messages with keys.
	KeyedPriority PriorityReach
	// Parallel is how many instances of a group can work at once.
	Parallel Parallelism
	// Dedup is how exact publish deduplication is.
	Dedup DedupScope
	// IDWindow is how long an id that a producer chose is remembered.
	IDWindow time.Duration
	// Bound is where TopicConfig.MaxMessages is enforced.
	Bound BoundScope
	// AtomicPublish is what an atomic publish may comprise, AtomicEmit what is stored in one step with a settlement.
	AtomicPublish, AtomicEmit Atomicity
	// Counts are those of Stats.
	Counts Counting
	// GetByID is how Get finds a message without its Ref.
	GetByID Lookup
	// PhysicalDelete: a deleted message is gone from the backend, not only marked.
	PhysicalDelete bool
	// History is how far back a group may start or be reset.
	History HistoryReach
	// Endings: of messages that are done, Entry tells when they were settled, by whom, and how long their handler ran.
	Endings bool
	// Durability is the level of a publish that asks for none. Levels are all that can be asked for.
	Durability Durability
	Levels     []Durability
	// MaxBody is the largest body in bytes.
	MaxBody int
	// SettleLag is for how long a crash of the consumer can still take back a settlement that was accepted. Zero: it
	// cannot.
	SettleLag time.Duration
	// Local says that a publish waits for neither a network nor a disk, so that gathering callers into batches gains
	// nothing.
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

// Refuse is the error for a level that cannot be asked for.
func (c Capabilities) Refuse(level Durability) error {
	return NewError(ErrUnsupported, fmt.Sprintf("%s cannot give durability %q", c.Driver, level),
		fmt.Sprintf("it gives %v; another broker or setting gives more", c.Levels), nil)
}
