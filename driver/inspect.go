package driver

import (
	"context"
	"fmt"
	"time"
)

// Inspector looks without changing. Nothing in it scans a whole topic in one call.
type Inspector interface {
	// Topics returns the topics in order of their names: all of them, or, with names, those that exist.
	Topics(ctx context.Context, names ...string) ([]TopicInfo, error)
	// Stats takes time in proportion to the number of groups, never of messages. ErrNotFound for an unknown topic.
	Stats(ctx context.Context, topic string) (TopicStats, error)
	// Browse returns a page of entries in one state, oldest first, looking at no more than Query.MaxScan. Dead letters
	// are in the order in which they died, over all partitions or shards; other states may come one partition after the
	// other.
	Browse(ctx context.Context, q Query) (Page, error)
	// Get returns a message as every group sees it; with one element with an empty Group while it is delayed for all.
	// Where t.Ref is set it is used, otherwise t.ID. ErrNotFound when there is none. t.Group narrows to one group.
	Get(ctx context.Context, t Target) ([]Entry, error)
	// Usage tells what the whole backend uses, as far as it can say.
	Usage(ctx context.Context) (Usage, error)
}

// Usage is what a backend uses, that of others who share it included. Zero means unknown, or that there is none.
type Usage struct {
	// Memory is what it holds in memory, of at most MemoryLimit.
	Memory, MemoryLimit int64
	// Disk is what its files take, with DiskFree left for more.
	Disk, DiskFree int64
	// Connections are clients of the server.
	Connections int
}

// Target names one message: by Ref (always cheap) or by ID. Group is empty for one that is delayed for all groups.
type Target struct {
	Topic string
	Group string
	Ref   Ref
	ID    string
	// Death, if not zero, means only the dead letter of Group whose Rounds is Death-1. Move and Delete then change nothing
	// else: a message that lives, or has died again since, is ErrConflict.
	Death int
}

// State is where a message is, as one group sees it.
type State string

// States. A message is in exactly one of them for each group, or in StateDelayed or StateHeld for the topic.
const (
	StateDelayed  State = "delayed"  // published for later; belongs to the topic until due
	StateHeld     State = "held"     // half of a transaction; belongs to the topic until moved or deleted
	StateReady    State = "ready"    // due; may wait for its key
	StateInflight State = "inflight" // leased to a consumer
	StateWaiting  State = "waiting"  // waits for a retry, or parked
	StateDead     State = "dead"     // a dead letter of the group
	StateInvalid  State = "invalid"  // could not be decoded; belongs to the topic
	StateDone     State = "done"     // settled, and kept because of TopicConfig.Keep
)

// Entry is a message as one group sees it.
type Entry struct {
	// Message is nil for StateInvalid.
	*Message
	Ref        Ref
	Group      string // empty for StateDelayed, StateHeld and StateInvalid
	State      State
	Attempt    int       // of the delivery under way, or of the next one: 1 of what is delayed or held
	Deliveries int       // likewise
	DueAt      time.Time // StateDelayed, StateWaiting
	ExpiresAt  time.Time // zero: never
	Instance   string    // StateInflight: who holds it; StateDone: who settled it
	// SettledAt is when the group settled it, by the backend's clock, and Took how long its last handler ran: of
	// StateDone, where Capabilities.Endings is true. What expired or was cancelled has a time only. Zero: not known, of
	// what was settled before this was kept for example.
	SettledAt time.Time
	Took      time.Duration
	History   []Failure   // in Group
	Dead      *DeadLetter // StateDead
	Raw       []byte      // StateInvalid: the bytes as found
	Problem   string      // StateInvalid: why they could not be decoded
	// StateInvalid: when that was found, by the backend's clock; zero: not known, it was before this was kept
	FoundAt time.Time
}

// TopicInfo is a topic and its settings.
type TopicInfo struct {
	Topic  string
	Config TopicConfig
	Paused bool
	Groups []string // in order of their names
}

// TopicStats are counts of one topic. For the numbers of messages that entered and left,
// Published = Fanned + Delayed + Held + Expired + Cancelled, always.
type TopicStats struct {
	Topic  string
	Paused bool
	// Published were accepted since the topic began, duplicates not counted.
	Published uint64
	// Fanned became due and went to the groups.
	Fanned uint64
	// Expired and Cancelled left before they were due.
	Expired, Cancelled uint64
	Delayed, Held      int64
	Invalid            int64
	// Messages and Bytes are what TopicConfig.MaxMessages and MaxBytes bound: everything not settled in every group,
	// dead letters not counted.
	Messages, Bytes int64
	Groups          []GroupStats // in order of their names
}

// GroupStats are counts of one group. Received = Acked + Dropped + Expired + Cancelled + Ready + Inflight + Waiting +
// Dead, always.
type GroupStats struct {
	Group  string
	Order  Order
	Paused bool
	// Consumers are the subscriptions of all processes. Where a process is one member of a group (Kafka), another counts
	// as one.
	Consumers int
	// Received became ready for this group, again after a reset.
	Received uint64
	Acked    uint64
	Dropped  uint64
	Expired  uint64
	// Cancelled were purged or deleted, dead letters included.
	Cancelled uint64

	Ready, Inflight, Waiting, Dead int64
	// Redelivered counts leases lost, those that do not count as deliveries included.
	Redelivered uint64
	// Retried counts attempts that failed and were to be tried again. Died counts messages that became dead letters, each
	// time: unlike Dead it never falls, so that rates can be told from it.
	Retried, Died uint64
	// Oldest is how long the oldest ready message has been ready.
	Oldest time.Duration
}

// NeverConsumed reports whether messages wait in the group and nobody has ever handled one, nor is about to.
func (g GroupStats) NeverConsumed() bool {
	return g.Ready > 0 && g.Consumers == 0 && g.Inflight+g.Waiting+g.Dead == 0 && g.Acked+g.Dropped == 0
}

// Unbalanced returns the sentences above that do not hold, with the numbers. None means that nothing is lost.
func (s TopicStats) Unbalanced() []string {
	var out []string
	if in, sum := s.Published, s.Fanned+s.Expired+s.Cancelled+uint64(s.Delayed+s.Held); in != sum {
		out = append(out, fmt.Sprintf(
			"topic %s: %d published, but %d = %d fanned + %d delayed + %d held + %d expired + %d cancelled",
			s.Topic, in, sum, s.Fanned, s.Delayed, s.Held, s.Expired, s.Cancelled))
	}
	for _, g := range s.Groups {
		sum := g.Acked + g.Dropped + g.Expired + g.Cancelled + uint64(g.Ready+g.Inflight+g.Waiting+g.Dead)
		if g.Received != sum {
			out = append(out, fmt.Sprintf(
				"group %s of topic %s: %d received, but %d = %d acked + %d dropped + %d expired + %d cancelled + %d ready + %d "+
					"in flight + %d waiting + %d dead",
				g.Group, s.Topic, g.Received, sum, g.Acked, g.Dropped, g.Expired, g.Cancelled, g.Ready, g.Inflight,
				g.Waiting, g.Dead))
		}
	}
	return out
}

// Query selects what Browse returns.
type Query struct {
	Topic string
	Group string // required for states that belong to a group, and otherwise without meaning
	State State
	// Cursor continues after an earlier page of the same topic, group and state. Empty: from the oldest.
	Cursor string
	// Limit is the most entries returned. Defaults to 100; more than 1000 are returned in several pages.
	Limit int
	// MaxScan is the most entries looked at. Defaults to 10,000, and is 1,000,000 at most.
	MaxScan int
}

// Page is one answer of Browse. It may be empty although there is more.
type Page struct {
	Entries []Entry
	Scanned int
	// Next continues after this page; empty at the end.
	Next string
}
