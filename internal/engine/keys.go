package engine

import "encoding/binary"

// All records of a topic lie together, under its number: deleting a topic is deleting a range. Numbers are big endian,
// so that records lie in the order of publishing.
//
//	0 'b'              how often the store was opened
//	0 'k' ...          named values: see package kv
//	topic 'c' number   what one Receive claimed, until all of it is settled
//	topic 'd' id       a dedup id inside its window
//	topic 'i'          says that the chunks behind it are true
//	topic 'i' seq      what the indexes keep of some messages, from this one on, after a clean end
//	topic 'm' seq      a message: where it was first, and its envelope
//	topic 'm' seq 's'  where it is now, if that is not where it was first
//	topic 'o' id       an id of a producer's own, remembered after its message is gone
//	topic 's' seq      a stretch of messages that are cold, from this one on
//	topic 't'          the topic: its settings, groups and counters
const (
	kindBoot    = 'b'
	kindClaim   = 'c'
	kindDedup   = 'd'
	kindIndex   = 'i'
	kindKV      = 'k'
	kindMessage = 'm'
	kindOwnID   = 'o'
	kindStretch = 's'
	kindTopic   = 't'

	stateSuffix = 's'
)

const prefixSize = 4 + 1

func appendPrefix(dst []byte, topic uint32, kind byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, topic), kind)
}

func appendNumberKey(dst []byte, topic uint32, kind byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(dst, topic, kind), n)
}

// appendStateKey appends the key of the state of a message, which comes right behind that of the message.
func appendStateKey(dst []byte, topic uint32, seq uint64) []byte {
	return append(appendNumberKey(dst, topic, kindMessage, seq), stateSuffix)
}

func appendTextKey(dst []byte, topic uint32, kind byte, text string) []byte {
	return append(appendPrefix(dst, topic, kind), text...)
}

// numberOf returns the number in a key of appendNumberKey or appendStateKey, and whether it is one of the latter.
func numberOf(key []byte) (n uint64, state, ok bool) {
	state = len(key) == prefixSize+9 && key[prefixSize+8] == stateSuffix
	if len(key) != prefixSize+8 && !state {
		return 0, false, false
	}
	return binary.BigEndian.Uint64(key[prefixSize:]), state, true
}

// rangeOf returns the bounds of all records of one kind of a topic.
func rangeOf(topic uint32, kind byte) (from, to []byte) {
	return appendPrefix(nil, topic, kind), appendPrefix(nil, topic, kind+1)
}

// MessageRange returns the bounds of the messages of a topic, which are most of what is stored.
func MessageRange(topic uint32) (from, to []byte) { return rangeOf(topic, kindMessage) }

// rangeOfTopic returns the bounds of everything of a topic.
func rangeOfTopic(topic uint32) (from, to []byte) {
	return binary.BigEndian.AppendUint32(nil, topic), binary.BigEndian.AppendUint32(nil, topic+1)
}
