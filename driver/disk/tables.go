package disk

import (
	"encoding/binary"

	"github.com/cockroachdb/pebble/v2"

	"github.com/ferrymq/ferry/internal/engine"
)

// Messages are written in the order of their keys and go in about that order, so their tables need not be merged with
// others, which is most of the work of such a store. They must be if one table spans them: the record of the topic,
// which every write changes, lies behind all messages. So tables end where the messages of a topic begin and end.

// apartUpTo is the number of the last topic whose messages have tables of their own: tables must not become too many.
const apartUpTo = 64

// spanOf says where the table that begins with a key must end: always behind the key, or nowhere.
func spanOf(key []byte) (pebble.SpanPolicy, []byte, error) {
	const topicSize = 4
	if len(key) < topicSize {
		return pebble.SpanPolicy{}, nil, nil // not a key of the engine
	}
	topic := binary.BigEndian.Uint32(key)
	if topic > apartUpTo {
		return pebble.SpanPolicy{}, nil, nil
	}
	from, to := engine.MessageRange(max(topic, 1))
	switch {
	case string(key) < string(from):
		return pebble.SpanPolicy{}, from, nil
	case string(key) < string(to):
		return pebble.SpanPolicy{}, to, nil
	case topic == apartUpTo:
		return pebble.SpanPolicy{}, nil, nil
	}
	next, _ := engine.MessageRange(topic + 1)
	return pebble.SpanPolicy{}, next, nil
}
