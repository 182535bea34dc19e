package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// stateHeader carries what Ferry knows about a stored message beyond the message itself.
const stateHeader = "ferry-state"

// state is what stateHeader holds, as JSON. Which fields are set depends on the topic.
type state struct {
	Epoch    int64         `json:"epoch,omitempty"`   // side: of the owner that wrote it
	Insert   bool          `json:"insert,omitempty"`  // side: written by somebody else than the owner
	Offset   int64         `json:"offset"`            // side: in the main topic; -1 when it has none
	Done     bool          `json:"done,omitempty"`    // side: it has ended, and that is not committed yet
	Order    int64         `json:"order,omitempty"`   // side: before this offset of the main topic
	Among    int64         `json:"among,omitempty"`   // side: its place among those of the same order
	After    time.Duration `json:"after,omitempty"`   // due this long after the record was stored
	Due      int64         `json:"due,omitempty"`     // tier: in milliseconds, once it has hopped
	Entered  int64         `json:"entered,omitempty"` // tier: when it came into the tiers, once it has hopped
	Stamp    int64         `json:"stamp,omitempty"`   // tier: how often it was moved
	Hold     bool          `json:"hold,omitempty"`
	Loose    bool          `json:"loose,omitempty"` // blocks no key before it is due
	Tail     bool          `json:"tail,omitempty"`  // joins the tail when it is due
	Attempts int           `json:"attempts,omitempty"`
	Lost     int           `json:"lost,omitempty"`
	Once     bool          `json:"once,omitempty"`   // a lease was lost, counted or not
	Begun    string        `json:"begun,omitempty"`  // side: the delivery whose handler was about to start
	Silent   []string      `json:"silent,omitempty"` // side: lost deliveries that count and had begun
	Rounds   int           `json:"rounds,omitempty"`
	Cause    driver.Cause  `json:"cause,omitempty"`
	Spared   bool          `json:"spared,omitempty"` // its TTL was lifted
	Ref      driver.Ref    `json:"ref"`
	History  []byte        `json:"history,omitempty"`
	Until    int64         `json:"until,omitempty"` // in milliseconds: stored later it is void; see isLate
}

func (s state) header() kgo.RecordHeader {
	data, _ := json.Marshal(s) // plain data: never fails
	return kgo.RecordHeader{Key: stateHeader, Value: data}
}

func stateOf(r *kgo.Record) (state, bool) {
	for _, h := range r.Headers {
		if h.Key == stateHeader {
			return readState(h.Value)
		}
	}
	return state{}, false
}

func readState(data []byte) (state, bool) {
	var s state
	err := json.Unmarshal(data, &s)
	return s, err == nil
}

// toRecord writes a message as a record that any Kafka client can read. The message is not retained.
func toRecord(topic string, partition int32, m *driver.Message) *kgo.Record {
	r := new(kgo.Record)
	writeRecord(r, new(scratch), nil, topic, partition, m)
	return r
}

// writeRecord is toRecord into a record that has room for its headers. The body is copied unless it is given.
func writeRecord(r *kgo.Record, room *scratch, body []byte, topic string, partition int32, m *driver.Message) {
	stored := *m
	stored.Topic = "" // that of the record says it
	copied := 0
	if body == nil {
		copied = len(m.Body)
	}
	buf := room.take(copied + len(m.Key) + envelope.FieldsRoom)
	if body == nil {
		body = buf[:copied:copied] // never nil: a null value is a tombstone
		copy(body, m.Body)
	}
	r.Topic, r.Partition, r.Value = topic, partition, body
	if m.Key != "" {
		r.Key = buf[copied : copied+len(m.Key) : copied+len(m.Key)]
		copy(r.Key, m.Key)
	}
	room.pairs = envelope.ToFieldsIn(envelope.Kafka, room.pairs[:0], buf[copied+len(m.Key):copied+len(m.Key)], &stored)
	for _, p := range room.pairs {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: p.Name, Value: p.Value})
	}
}

// fromRecord reads a message. A record of a producer that does not know Ferry is a message with its headers.
func fromRecord(topic string, r *kgo.Record) (*driver.Message, error) {
	m := new(driver.Message)
	err := readRecord(m, topic, r)
	m.Body = bytes.Clone(m.Body)
	return m, err
}

// readRecord is fromRecord into an empty message. Its body is that of the record.
func readRecord(m *driver.Message, topic string, r *kgo.Record) error {
	m.Key, m.Body = string(r.Key), r.Value[:len(r.Value):len(r.Value)]
	var room [8]envelope.Pair
	pairs, ours := room[:0], false
	for _, h := range r.Headers {
		if h.Key == stateHeader {
			continue
		}
		ours = ours || isOurs(h)
		pairs = append(pairs, envelope.Pair{Name: h.Key, Value: h.Value})
	}
	if !ours {
		foreign(m, r)
	} else if err := envelope.FromFields(envelope.Kafka, pairs, m); err != nil {
		return err
	}
	m.Topic = topic
	if m.PublishedAt.IsZero() {
		m.PublishedAt = r.Timestamp.UTC()
	}
	return nil
}

func isOurs(h kgo.RecordHeader) bool { return envelope.KafkaOwn(h.Key) }

// ours reports whether a record was written by Ferry, or claims to be.
func ours(r *kgo.Record) bool { return slices.ContainsFunc(r.Headers, isOurs) }

// errForeign is why a record is invalid that could be a message.
var errForeign = driver.NewError(driver.ErrInvalid, "the record has no headers of Ferry, and foreign records are rejected", "publish it through Ferry, or open with foreign=accept", nil)

func foreign(m *driver.Message, r *kgo.Record) {
	m.ID = fmt.Sprintf("%s-%d-%d", "kafka", r.Partition, r.Offset)
	for _, h := range r.Headers {
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		m.Headers[h.Key] = string(h.Value)
	}
}

// refOf locates a record of a main topic. Offsets begin at 0, and the zero Ref means unknown.
func refOf(r *kgo.Record) driver.Ref {
	return driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1}
}

// Sub of a Ref that does not point into the main topic.
const (
	subDelay = 1 + iota
	subSide
	subInvalid
	subHeld
)

// murmur2 is the hash of Kafka's own default partitioner, so that producers in other languages agree.
func murmur2(b []byte) uint32 {
	const m = 0x5bd1e995
	h := uint32(0x9747b28c) ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := (uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24) * m
		h = h*m ^ (k^k>>24)*m
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}

// partitionOf places a key among n partitions.
func partitionOf(key string, n int) int32 { return int32(murmur2([]byte(key))&0x7fffffff) % int32(n) }
