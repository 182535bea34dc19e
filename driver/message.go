package driver

import (
	"math"
	"time"
)

// Priority selects one of four lanes. The zero value is Normal.
type Priority int8

// The lanes, from the last served to the first.
const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
	Urgent Priority = 2
)

// Lane returns the lane number of p, 0 (low) to 3 (urgent).
func (p Priority) Lane() int { return int(p) + 1 }

// Valid reports whether p is one of the four priorities.
func (p Priority) Valid() bool { return p >= Low && p <= Urgent }

// String returns the name of the lane: "low", "normal", "high" or "urgent".
func (p Priority) String() string {
	if !p.Valid() {
		return "invalid"
	}
	return [...]string{"low", "normal", "high", "urgent"}[p.Lane()]
}

// Hold as a Delay keeps a message until it is moved (committed) or deleted (rolled back).
const Hold time.Duration = 1<<63 - 1

// Unlimited as MaxAttempts has a message tried again and again. It is the largest number there may be, which no attempt
// reaches.
const Unlimited = math.MaxInt32

// Message is what a producer publishes and a consumer gets, whole.
type Message struct {
	// ID is unique in its topic.
	ID string
	// OwnID says that the producer chose ID itself: publishing it again within Capabilities.IDWindow is a duplicate.
	OwnID bool
	// Priority is here because it fits behind OwnID: a message is no larger than it was without Unique.
	Priority Priority

	Topic string
	// Key orders messages: those of one key are handled one at a time, in publish order. Empty means unordered.
	Key string

	Body        []byte
	ContentType string
	Headers     map[string]string

	// Delay makes the message due this long after the backend stored it. Zero and less mean now.
	Delay time.Duration
	// At makes it due when the backend's clock reaches it. Not together with Delay. A time in the past means now; one
	// after 2262-04-11, which not every backend can say, is refused with ErrInvalid.
	At time.Time
	// TTL removes the message this long after the backend stored it, unless it is settled or running. Zero: never.
	TTL time.Duration

	// DedupID makes publishes with the same id in the same topic, within DedupWindow of the first, one message.
	DedupID     string
	DedupWindow time.Duration

	// MaxAttempts and Retry override what the handler is registered with. Zero values: no override. See also Unlimited.
	MaxAttempts int
	Retry       *RetryPolicy

	// Unique asks that no other message of the topic with the same unique id is unsettled. It is resolved above the seam
	// and not stored: drivers see a header instead. Nil: nothing is asked.
	Unique *Unique

	// PublishedAt is the backend's time of storing it. Set by the backend, ignored on publish.
	PublishedAt time.Time
}

// Clone returns a deep copy.
func (m *Message) Clone() *Message {
	c := *m
	c.Body = append([]byte(nil), m.Body...)
	if m.Headers != nil {
		c.Headers = make(map[string]string, len(m.Headers))
		for k, v := range m.Headers {
			c.Headers[k] = v
		}
	}
	if m.Retry != nil {
		r := *m.Retry
		r.Delays = append([]time.Duration(nil), m.Retry.Delays...)
		c.Retry = &r
	}
	return &c
}
