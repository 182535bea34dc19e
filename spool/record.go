package spool

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// maxOverhead is how much larger than the body of a message its record may be: headers, names and a retry policy, each
// bounded.
const maxOverhead = driver.MaxHeaderSize + 16<<10

// recordVersion begins every record.
const recordVersion = 1

// Record is a message in the local store, as it was published.
type Record struct {
	*driver.Message
	// Level is what its publisher asked for; the broker is asked for the same.
	Level driver.Durability
	// Age is how long ago it was accepted, when it came into this store: zero unless it was in another one before.
	Age time.Duration
}

// spooled returns the form of a message in the local store: same topic, key, id and lane, so that the store keeps its
// order and knows it again; the whole message is its body. Delay and TTL are not the store's business: it hands out
// everything at once.
func spooled(m *driver.Message, level driver.Durability) *driver.Message {
	return Record{Message: m, Level: level}.stored()
}

func (r Record) stored() *driver.Message {
	m := r.Message
	return &driver.Message{ID: m.ID, OwnID: m.OwnID, Topic: m.Topic, Key: m.Key, Priority: m.Priority, DedupID: m.DedupID,
		DedupWindow: m.DedupWindow,
		ContentType: contentType, Body: r.append(nil)}
}

// append appends the record: version, level, age, and the envelope of the message.
func (r Record) append(dst []byte) []byte {
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(r.Level))
	dst = binary.AppendUvarint(dst, uint64(max(r.Age, 0)))
	return envelope.Append(dst, r.Message)
}

// Decode reads the body of a message in the local store. The body of the message it returns is part of data.
func Decode(data []byte) (Record, error) {
	bad := func(cause error) (Record, error) {
		return Record{}, driver.NewError(driver.ErrInvalid, "this is no message of a spool",
			"look at its bytes; export and purge it", cause)
	}
	if len(data) == 0 || data[0] != recordVersion {
		return bad(nil)
	}
	level, n := binary.Uvarint(data[1:])
	if n <= 0 || level > 1<<15 {
		return bad(errors.New("its level cannot be read"))
	}
	age, k := binary.Uvarint(data[1+n:])
	if k <= 0 || age > 1<<62 {
		return bad(errors.New("its age cannot be read"))
	}
	m, err := envelope.Decode(data[1+n+k:])
	if err != nil {
		return bad(err)
	}
	return Record{Message: m, Level: driver.Durability(level), Age: time.Duration(age)}, nil
}

// Due returns the message as it is published when so much time has passed since it came into this store: what is left
// of its delay, its TTL and its dedup window, which count from when it was accepted. Its id is one that the broker
// remembers, so that it can be repeated. False: its TTL is over.
func (r Record) Due(passed time.Duration) (*driver.Message, bool) {
	m := *r.Message
	age := max(r.Age+passed, 0)
	m.OwnID, m.PublishedAt = true, time.Time{}
	if m.Delay != driver.Hold { // of a store that an older version wrote
		m.Delay = max(m.Delay-age, 0)
	}
	if m.TTL > 0 {
		if m.TTL -= age; m.TTL <= 0 {
			return nil, false
		}
	}
	if m.DedupWindow > 0 {
		if m.DedupWindow -= age; m.DedupWindow <= 0 {
			m.DedupID, m.DedupWindow = "", 0
		}
	}
	return &m, true
}
