package delay

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// Entry is the message as operators see it.
func (x *Delayed) Entry() driver.Entry {
	e := driver.Entry{Message: x.M, Ref: x.Ref, State: driver.StateDelayed, Attempt: 1, Deliveries: 1, DueAt: x.due,
		ExpiresAt: x.expires()}
	if x.S.Hold {
		e.State = driver.StateHeld
	}
	return e
}

// A message that is due later waits in one topic whose partitions are tiers: tier n holds what it is given for a fixed
// time, so that each partition is first in, first out and only its head is looked at, however many wait. From there it
// hops to the largest tier that is not too long. The last stretch is a timer in the memory of the partition's owner.
const (
	tiers       = 10                      // 0 s, then 1 s, 4 s, 16 s ... 18 h; longer waits pass the last one again
	lastStretch = 1200 * time.Millisecond // below it a message waits in memory
	tierMargin  = 200 * time.Millisecond  // a tier is left this long before the message is due

	// sealed is how long before it is due a message can no longer be moved or deleted: who fires it looks at the marks
	// at most this long before.
	sealed = 100 * time.Millisecond
)

// tierWait is how long a tier holds what it is given.
func tierWait(tier int) time.Duration {
	if tier == 0 {
		return 0
	}
	return time.Second << (2 * (tier - 1))
}

// tierFor is the largest tier that does not hold a message too long.
func tierFor(remaining time.Duration) int {
	for tier := tiers - 1; tier > 0; tier-- {
		if tierWait(tier)+tierMargin <= remaining {
			return tier
		}
	}
	return 0
}

// Headers of a delayed record: its key is not the message's.
const (
	keyHeader   = "ferry-delayed-key"
	topicHeader = "ferry-delayed-topic"
)

func delayKey(topic, id string) string { return topic + "/" + id }

// laterRecord wraps a message that is not due: in a tier, or among the held.
func laterRecord(topic string, partition int32, key string, m *driver.Message, s record.State) *kgo.Record {
	r := record.ToRecord(topic, partition, m)
	r.Headers = append(r.Headers, s.Header(), kgo.RecordHeader{Key: keyHeader, Value: []byte(m.Key)},
		kgo.RecordHeader{Key: topicHeader, Value: []byte(m.Topic)})
	r.Key = []byte(key)
	return r
}

// TierRecord puts a message into the tier that fits: it leaves that before it expires. Who publishes it says how much
// remains until then.
func (w *firer) TierRecord(m *driver.Message, s record.State, remaining time.Duration) *kgo.Record {
	if x := (&Delayed{M: m, S: s}); !m.PublishedAt.IsZero() && !x.expires().IsZero() {
		remaining = min(remaining, x.expires().Sub(w.d.cluster.Now()))
	}
	key := delayKey(m.Topic, m.ID)
	partition := int32(tierFor(remaining)*w.width) + record.PartitionOf(key, w.width)
	s.Offset = -1
	return laterRecord(w.d.cluster.DelayTopic(), partition, key, m, s)
}

// HeldRecord puts a message among the held.
func (w *firer) HeldRecord(m *driver.Message, s record.State) *kgo.Record {
	s.Hold, s.Offset = true, -1
	return laterRecord(w.d.cluster.HeldTopic(), 0, heldKey(m.Topic, m.ID), m, s)
}

// Delayed is a message that is not due.
type Delayed struct {
	M   *driver.Message
	S   record.State
	Ref driver.Ref
	due time.Time // by the brokers' clock; zero: held
	// entered is when it came into the tiers, by the brokers' clock.
	entered time.Time
	// In a tier: where it is, and when it may leave it.
	p      *tierPartition
	offset int64
	leave  time.Time
}

// readLater turns a record of a tier, or of the held, into a message.
func readLater(r *kgo.Record) (*Delayed, bool) {
	c := *r
	c.Headers, c.Key = nil, nil
	topic := ""
	for _, h := range r.Headers {
		switch h.Key {
		case keyHeader:
			c.Key = h.Value
		case topicHeader:
			topic = string(h.Value)
		default:
			c.Headers = append(c.Headers, h)
		}
	}
	s, ok := record.StateOf(r)
	m, err := record.FromRecord(topic, &c)
	if !ok || err != nil || s.Late(r) {
		return nil, false
	}
	x := &Delayed{M: m, S: s, Ref: s.Ref, offset: r.Offset, entered: r.Timestamp}
	if s.Entered > 0 {
		x.entered = time.UnixMilli(s.Entered)
	}
	if x.Ref.IsZero() {
		x.Ref = LaterRef(r)
	}
	switch {
	case s.Hold:
	case s.Due > 0:
		x.due = time.UnixMilli(s.Due)
	case !m.At.IsZero() && s.Cause == driver.CauseFirst:
		x.due = m.At
	default:
		x.due = r.Timestamp.Add(s.After).Add(time.Millisecond) // the broker's time is cut to milliseconds
	}
	return x, true
}

// LaterRef locates a stored message that is not due, also after it has hopped.
func LaterRef(r *kgo.Record) driver.Ref {
	if s, ok := record.StateOf(r); ok && !s.Ref.IsZero() {
		return s.Ref
	} else if s.Hold {
		return driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1, Sub: record.SubHeld}
	}
	return driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1, Sub: record.SubDelay}
}

func (x *Delayed) expires() time.Time {
	if x.M.TTL <= 0 || x.S.Spared {
		return time.Time{}
	}
	return x.M.PublishedAt.Add(x.M.TTL)
}

// rings is when something is to be done about it: it is due, or has expired before.
func (x *Delayed) rings() time.Time {
	if x.expired(x.due) {
		return x.expires()
	}
	return x.due
}

func (x *Delayed) expired(now time.Time) bool {
	at := x.expires()
	return !at.IsZero() && !at.After(now)
}

// size is about what it takes in memory.
func (x *Delayed) size() int { return len(x.M.Body) + 500 }
