package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// SortKey orders by time, then by place in the log.
func SortKey(ms int64, ref driver.Ref) string {
	return fmt.Sprintf("%016d.%06d.%016d.%d", ms, ref.Partition, ref.Pos, ref.Sub)
}

// HeaderOf is the value of a header, or empty.
func HeaderOf(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// Named reports whether a target means a message.
func Named(t driver.Target, ref driver.Ref, id string) bool {
	if !t.Ref.IsZero() {
		return ref == t.Ref
	}
	return id == t.ID && id != ""
}

// RefAt is that of the record at an offset of a main topic.
func RefAt(partition int32, offset int64) driver.Ref {
	return RefOf(&kgo.Record{Partition: partition, Offset: offset})
}

// stateHeader carries what Ferry knows about a stored message beyond the message itself.
const stateHeader = "ferry-state"

// State is what stateHeader holds, as JSON. Which fields are set depends on the topic.
type State struct {
	Epoch    int64         `json:"epoch,omitempty"`   // retry: of the owner that wrote it
	Insert   bool          `json:"insert,omitempty"`  // retry: written by somebody else than the owner
	Offset   int64         `json:"offset"`            // retry: in the main topic; -1 when it has none
	Done     bool          `json:"done,omitempty"`    // retry: it has ended, and that is not committed yet
	Order    int64         `json:"order,omitempty"`   // retry: before this offset of the main topic
	Among    int64         `json:"among,omitempty"`   // retry: its place among those of the same order
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
	Begun    string        `json:"begun,omitempty"`  // retry: the delivery whose handler was about to start
	Silent   []string      `json:"silent,omitempty"` // retry: lost deliveries that count and had begun
	Rounds   int           `json:"rounds,omitempty"`
	Cause    driver.Cause  `json:"cause,omitempty"`
	Spared   bool          `json:"spared,omitempty"` // its TTL was lifted
	Ref      driver.Ref    `json:"ref"`
	History  []byte        `json:"history,omitempty"`
	Until    int64         `json:"until,omitempty"` // in milliseconds: stored later it is void; see IsLate
}

// Header is the state as a header of a record.
func (s State) Header() kgo.RecordHeader {
	data, _ := json.Marshal(s) // plain data: never fails
	return kgo.RecordHeader{Key: stateHeader, Value: data}
}

// StateOf reads the state of a record, and reports whether it has one.
func StateOf(r *kgo.Record) (State, bool) {
	if i := slices.IndexFunc(r.Headers, isState); i >= 0 {
		return readState(r.Headers[i].Value)
	}
	return State{}, false
}

func isState(h kgo.RecordHeader) bool { return h.Key == stateHeader }

// readState is apart from StateOf: what it reads into is on the heap, which most records, having no state, must not pay
// for (BenchmarkDrain).
func readState(data []byte) (State, bool) {
	var s State
	err := json.Unmarshal(data, &s)
	return s, err == nil
}

// ToRecord writes a message as a record that any Kafka client can read. The message is not retained.
func ToRecord(topic string, partition int32, m *driver.Message) *kgo.Record {
	r := new(kgo.Record)
	WriteRecord(r, new(Scratch), nil, topic, partition, m)
	return r
}

// WriteRecord is ToRecord into a record that has space for its headers. The body is copied unless it is given.
func WriteRecord(r *kgo.Record, scratch *Scratch, body []byte, topic string, partition int32, m *driver.Message) {
	stored := *m
	stored.Topic = "" // that of the record says it
	copied := 0
	if body == nil {
		copied = len(m.Body)
	}
	buf := scratch.take(copied + len(m.Key) + envelope.FieldsRoom)
	if body == nil {
		body = buf[:copied:copied] // never nil: a null value is a tombstone
		copy(body, m.Body)
	}
	r.Topic, r.Partition, r.Value = topic, partition, body
	if m.Key != "" {
		r.Key = buf[copied : copied+len(m.Key) : copied+len(m.Key)]
		copy(r.Key, m.Key)
	}
	scratch.pairs = envelope.ToFieldsIn(envelope.Kafka, scratch.pairs[:0], buf[copied+len(m.Key):copied+len(m.Key)],
		&stored)
	for _, p := range scratch.pairs {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: p.Name, Value: p.Value})
	}
}

// FromRecord reads a message. A record of a producer that does not know Ferry is a message with its headers.
func FromRecord(topic string, r *kgo.Record) (*driver.Message, error) {
	m := new(driver.Message)
	err := ReadRecord(m, topic, r)
	m.Body = bytes.Clone(m.Body)
	return m, err
}

// ReadRecord is FromRecord into an empty message. Its body is that of the record.
func ReadRecord(m *driver.Message, topic string, r *kgo.Record) error {
	m.Key, m.Body = string(r.Key), r.Value[:len(r.Value):len(r.Value)]
	var few [8]envelope.Pair
	pairs, ours := few[:0], false
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

// Ours reports whether a record was written by Ferry, or says so.
func Ours(r *kgo.Record) bool { return slices.ContainsFunc(r.Headers, isOurs) }

// ErrForeign is why a record is invalid that could be a message.
var ErrForeign = driver.NewError(driver.ErrInvalid, "the record has no headers of Ferry, and foreign records are "+
	"rejected", "publish it through Ferry, or open with foreign=accept", nil)

func foreign(m *driver.Message, r *kgo.Record) {
	m.ID = fmt.Sprintf("%s-%d-%d", "kafka", r.Partition, r.Offset)
	for _, h := range r.Headers {
		if m.Headers == nil {
			m.Headers = map[string]string{}
		}
		m.Headers[h.Key] = string(h.Value)
	}
}

// RefOf locates a record of a main topic. Offsets begin at 0, and the zero Ref means unknown.
func RefOf(r *kgo.Record) driver.Ref {
	return driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1}
}

// Sub of a Ref that does not point into the main topic.
const (
	SubDelay = 1 + iota
	SubSide
	subInvalid
	SubHeld
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

// PartitionOf places a key among n partitions.
func PartitionOf(key string, n int) int32 { return int32(murmur2([]byte(key))&0x7fffffff) % int32(n) }

// Tombstone deletes a key of a compacted topic.
func Tombstone(topic string, partition int32, key string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key)}
}

// Limit makes records void that brokers store after a time of theirs.
func Limit(until time.Time, lists ...[]*kgo.Record) {
	for _, rs := range lists {
		for _, r := range rs {
			s, ok := StateOf(r)
			if !ok {
				s.Offset = -1
			}
			s.Until = until.UnixMilli()
			r.Headers = append(slices.DeleteFunc(slices.Clone(r.Headers), isState), s.Header())
		}
	}
}

// Late reports whether the record of a state was stored later than it may: it has no effect.
func (s State) Late(r *kgo.Record) bool { return s.Until > 0 && r.Timestamp.UnixMilli() > s.Until }

// IsLate reports whether a record was stored later than it may: it has no effect.
func IsLate(r *kgo.Record) bool {
	s, _ := StateOf(r)
	return s.Late(r)
}

// DeadEntry is a dead letter as operators see it.
func DeadEntry(topic string, r *kgo.Record) (driver.Entry, bool) {
	dl, err := envelope.DecodeDeadLetter(r.Value)
	if err != nil {
		return driver.Entry{}, false
	}
	dl.Message.Topic = topic
	return driver.Entry{Message: dl.Message, Ref: dl.Origin.Ref, Group: dl.Origin.Group, State: driver.StateDead,
		Attempt: dl.Attempts + 1, Deliveries: dl.Deliveries, History: dl.History, Dead: dl}, true
}

// InvalidEntry is a broken record as operators see it.
func InvalidEntry(r *kgo.Record) (driver.Entry, bool) {
	s, ok := StateOf(r)
	return driver.Entry{Ref: s.Ref, State: driver.StateInvalid, Raw: bytes.Clone(r.Value),
		Problem: HeaderOf(r, ProblemHeader), FoundAt: r.Timestamp.UTC()}, ok
}

// ProblemHeader says why a record is among the invalid.
const ProblemHeader = "ferry-problem"

// DeadName names a message among the dead letters of a topic. The key of a dead letter has its round too: the end of a
// letter that was replayed must not be that of the one that came of it.
func DeadName(group, id string) string { return group + "/" + id }

// DeadKey is the key of a dead letter; see DeadName.
func DeadKey(group, id string, rounds int) string {
	if rounds == 0 {
		return DeadName(group, id)
	}
	return DeadName(group, id) + roundSeparator + strconv.Itoa(rounds)
}

// roundSeparator is in no id.
const roundSeparator = "\x00"

// DeadList splits the key of a dead letter into its group and its name.
func DeadList(key string) (group, name string) {
	name, _, _ = strings.Cut(key, roundSeparator)
	group, _, _ = strings.Cut(name, "/")
	return group, name
}
