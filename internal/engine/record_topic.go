package engine

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// storedTopic is a topic without its messages. Counts of what is there are not stored: they are counted again.
type storedTopic struct {
	name                                  string
	config                                driver.TopicConfig
	fixed, paused                         bool
	seq, places, head                     uint64
	trimmed                               uint64
	trimmedDue                            int64 // stamp
	groupNumbers                          uint32
	published, fanned, expired, cancelled uint64
	groups                                []storedGroup
}

// storedGroup is a group. It sees what became ready after since, unless the state of a message says otherwise.
type storedGroup struct {
	number                                                    uint32
	name                                                      string
	order                                                     driver.Order
	orderFixed, paused                                        bool
	since, buried                                             uint64
	received, acked, dropped, expired, cancelled, redelivered uint64
	retried                                                   uint64
}

// appendTopic appends the record of a topic as it is now.
func appendTopic(dst []byte, t *topic, now moment) []byte {
	start := len(dst)
	dst = append(dst, recordVersion)
	dst = appendBytes(dst, t.name)
	for _, n := range [...]int64{t.config.MaxMessages, t.config.MaxBytes, int64(t.config.Keep),
		int64(t.config.Partitions)} {
		dst = binary.AppendVarint(dst, n)
	}
	for _, b := range [...]bool{t.config.ExpiredDead, t.fixed, t.paused} {
		dst = appendBool(dst, b)
	}
	dst = binary.AppendVarint(dst, now.stamp(t.trimmedDue))
	for _, n := range [...]uint64{t.seq, t.places, t.first(), t.trimmed, uint64(t.groupNumbers),
		t.stats.Published, t.stats.Fanned, t.stats.Expired, t.stats.Cancelled, uint64(len(t.groups))} {
		dst = binary.AppendUvarint(dst, n)
	}
	for _, g := range t.groups {
		dst = appendGroup(dst, g)
	}
	return seal(appendLater(dst, t), start)
}

// appendLater appends what records of older programs do not have, unless there is nothing of it: the bound of what is
// kept, then how often each group retried.
func appendLater(dst []byte, t *topic) []byte {
	retried := slices.ContainsFunc(t.groups, func(g *group) bool { return g.stats.Retried > 0 })
	if t.config.KeepMost > 0 || retried {
		dst = binary.AppendUvarint(dst, uint64(t.config.KeepMost))
	}
	if retried {
		for _, g := range t.groups {
			dst = binary.AppendUvarint(dst, g.stats.Retried)
		}
	}
	return dst
}

func appendGroup(dst []byte, g *group) []byte {
	dst = appendBytes(dst, g.name)
	for _, b := range [...]bool{g.orderFixed, g.paused} {
		dst = appendBool(dst, b)
	}
	for _, n := range [...]uint64{uint64(g.number), uint64(g.order), g.since, g.buried, g.stats.Received, g.stats.Acked,
		g.stats.Dropped,
		g.stats.Expired, g.stats.Cancelled, g.stats.Redelivered} {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// decodeTopic reads what appendTopic wrote. It keeps nothing of record.
func decodeTopic(record []byte) (*storedTopic, error) {
	r := unseal(record)
	s := &storedTopic{name: r.text()}
	s.config = driver.TopicConfig{MaxMessages: r.int(), MaxBytes: r.int(), Keep: time.Duration(r.int()),
		Partitions: int(r.int())}
	s.config.ExpiredDead, s.fixed, s.paused = r.bool(), r.bool(), r.bool()
	s.trimmedDue = r.int()
	s.seq, s.places, s.head, s.trimmed, s.groupNumbers = r.uint(), r.uint(), r.uint(), r.uint(), r.uint32()
	s.published, s.fanned, s.expired, s.cancelled = r.uint(), r.uint(), r.uint(), r.uint()
	n := r.uint()
	for i := uint64(0); i < n && r.err == nil; i++ {
		g := storedGroup{name: r.text(), orderFixed: r.bool(), paused: r.bool(), number: r.uint32(),
			order: driver.Order(r.upTo(uint64(driver.Relaxed)))}
		g.since, g.buried = r.uint(), r.uint()
		g.received, g.acked, g.dropped, g.expired, g.cancelled, g.redelivered = r.uint(), r.uint(), r.uint(), r.uint(),
			r.uint(), r.uint()
		s.groups = append(s.groups, g)
	}
	if len(r.rest) > 0 && r.err == nil {
		s.config.KeepMost = int64(r.upTo(math.MaxInt64))
	}
	for i := 0; len(r.rest) > 0 && r.err == nil && i < len(s.groups); i++ {
		s.groups[i].retried = r.uint()
	}
	if err := r.end(); err != nil {
		return nil, fmt.Errorf("a topic: %w", err)
	}
	return s, nil
}
