package driver

import (
	"context"
	"time"
)

// Log is what a driver can do that keeps messages in partitions which groups read in order. It is optional: the other
// drivers have no such places to tell of. ferry.Broker.Log hands it out. What a backend cannot do of it is refused with
// ErrUnsupported.
type Log interface {
	// Partitions tells of each partition of a topic what it holds, and how far each group has come in it.
	Partitions(ctx context.Context, topic string) ([]Partition, error)
	// Pending returns a page of what a group has read and not settled, oldest first, one partition after the other.
	Pending(ctx context.Context, q PendingQuery) (PendingPage, error)
	// Replay makes what is kept from one position on, and before another, ready again for a group that had settled it.
	// Nothing is skipped, so it may be done while the group has consumers.
	Replay(ctx context.Context, topic, group string, o ReplayOptions) (ResetReport, error)
	// Range returns a page of what is in one partition, whatever became of it. Of what cannot be decoded it has the bytes.
	Range(ctx context.Context, q RangeQuery) (RangePage, error)
	// Retain sets the retention of a topic. Consumers apply it now and then; Trim applies it at once.
	Retain(ctx context.Context, topic string, r Retention) error
	// Retention returns what Retain has set.
	Retention(ctx context.Context, topic string) (Retention, error)
	// Trim removes what is beyond the retention, oldest first. What is in flight always stops it.
	Trim(ctx context.Context, topic string) (TrimReport, error)
}

// Wrapper is a Driver around another one. What is optional of that, its Log or Follower, is found through it; a
// Pipeliner is not, since a wrapper changes Publish.
type Wrapper interface{ Unwrap() Driver }

// LogOf returns the Log of a driver, or of the one that it wraps; nil where there is none.
func LogOf(d Driver) Log { return optional[Log](d) }

// optional returns what a driver, or the one that it wraps, can do beside the seam; the zero value where it cannot.
func optional[T any](d Driver) (none T) {
	for d != nil {
		if o, ok := d.(T); ok {
			return o
		}
		w, ok := d.(Wrapper)
		if !ok {
			return none
		}
		d = w.Unwrap()
	}
	return none
}

// Partition is one partition of a topic.
type Partition struct {
	Partition   int32
	Entries     int64 // what is in the log, settled and kept ones included
	Memory      int64 // bytes that the backend needs for all of the partition; zero when unknown
	First, Last Ref   // zero when it is empty
	Groups      []PartitionGroup
}

// PartitionGroup is how far a group has come in a partition.
type PartitionGroup struct {
	Group string
	// Owner is the instance that reads the partition, empty when none does.
	Owner string
	// Lag has not been read yet. Pending has been read and is not settled: ready, in flight or waiting.
	Lag, Pending int64
	Consumers    []PartitionConsumer
}

// PartitionConsumer is what a consumer has pending in a partition.
type PartitionConsumer struct {
	Instance string
	Pending  int64
	Idle     time.Duration // since it last did something
}

// PendingQuery selects what Pending returns.
type PendingQuery struct {
	Topic, Group string
	Instance     string // only what this one has; empty for all
	Cursor       string // continues after an earlier page of the same query
	Limit        int    // Defaults to 100; more than 1000 are returned in several pages.
}

// PendingPage is one answer of Pending.
type PendingPage struct {
	Entries []PendingEntry
	Next    string // continues after this page; empty at the end
}

// PendingEntry is one message that a group has read and not settled.
type PendingEntry struct {
	Ref        Ref
	ID         string
	Instance   string
	Idle       time.Duration // since it was last delivered
	Deliveries int
	State      State
}

// ReplayOptions say what to replay. The zero Positions are all that is kept.
type ReplayOptions struct {
	From, To Position // From FromEnd means the begin, To FromEnd the end
	DryRun   bool
}

// RangeQuery selects what Range returns: from one position on, and before another.
type RangeQuery struct {
	Topic     string
	Partition int32
	From, To  Position // From FromEnd means the begin, To FromEnd the end
	Limit     int      // Defaults to 100; more than 1000 are returned in several pages.
}

// RangePage is one answer of Range.
type RangePage struct {
	Entries []Entry
	Next    Ref // where the next page begins; zero at the end
}

// Retention bounds what a topic holds in its log. The zero value bounds nothing: messages go when the last group has
// settled them, or TopicConfig.Keep later.
type Retention struct {
	// Age, Entries and Bytes (of memory, as the backend reckons it) bound the log of a topic. Zero: no bound.
	Age            time.Duration
	Entries, Bytes int64
	// DropUnsettled lets the bounds remove what groups have not settled, counted as dropped. Otherwise they wait for it.
	DropUnsettled bool
}

// TrimReport tells what a trim did.
type TrimReport struct {
	Removed int  // entries
	Dropped int  // of those, not settled by some group
	Waits   bool // for what is not settled, or in flight
}
