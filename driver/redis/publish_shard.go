package redis

import (
	"bytes"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// shardPublish is what goes to one shard in one script.
type shardPublish struct {
	shard *shard
	at    []int           // places of the messages in the call
	last  scriptArg       // the greatest id so far, while they grow
	seen  map[string]bool // all ids, once they do not
	twice bool            // an id occurs twice, or is missing
	slow  bool            // it is not plain to the server
	kinds []byte
	ids   []scriptArg // as the index has them
	data  []scriptArg // envelopes
	more  []any
	bytes int
	arena []byte // ids and envelopes

	failed bool           // it may still be under way
	stored driver.Message // what is being put into an envelope
}

// Kinds of messages, as lua/publish.lua lists them. The two lowest bits are the lane.
const (
	kindKey   = 4
	kindDelay = 8
	kindTTL   = 16
	kindDedup = 32
	kindOwnID = 64
)

// newShardPublish returns one with room for n messages.
func newShardPublish(s *shard, arena []byte, n int) *shardPublish {
	return &shardPublish{shard: s, arena: arena, at: make([]int, 0, n), kinds: make([]byte, 0, n),
		ids: make([]scriptArg, 0, n), data: make([]scriptArg, 0, n)}
}

// spent returns memory that can be used again, if there is any.
func (x *shardPublish) spent() []byte {
	if x.failed {
		return nil
	}
	return x.arena[:0]
}

func (x *shardPublish) add(i int, m *driver.Message) {
	x.stored = *m
	x.stored.Topic, x.stored.PublishedAt = "", time.Time{}
	start := len(x.arena)
	x.arena = appendIndexID(x.arena, m.ID)
	middle := len(x.arena)
	x.arena = envelope.Append(x.arena, &x.stored)
	x.put(i, x.arena[start:middle:middle], x.arena[middle:len(x.arena):len(x.arena)], m)
}

// put adds an envelope with what the script must know of its message.
func (x *shardPublish) put(i int, id, data scriptArg, m *driver.Message) {
	x.note(id)
	x.at, x.ids, x.data = append(x.at, i), append(x.ids, id), append(x.data, data)
	x.bytes += len(data)
	kind := byte(m.Priority.Lane())
	if m.Key != "" {
		kind |= kindKey
		x.more = append(x.more, m.Key)
	}
	if delay := redisconn.DelayText(m); delay != "" {
		kind |= kindDelay
		x.more = append(x.more, delay)
	}
	if m.TTL > 0 {
		kind |= kindTTL
		x.more = append(x.more, redisconn.Milliseconds(m.TTL))
	}
	if m.DedupID != "" {
		kind |= kindDedup
		x.more = append(x.more, m.DedupID, redisconn.Milliseconds(m.DedupWindow))
	}
	if m.OwnID {
		kind |= kindOwnID
	}
	x.kinds = append(x.kinds, kind)
}

// note finds out whether an id occurs twice. Ids that grow, as ours do, cannot.
func (x *shardPublish) note(id scriptArg) {
	if x.seen == nil && bytes.Compare(id, x.last) > 0 {
		x.last = id
		return
	}
	if x.seen == nil {
		x.seen = make(map[string]bool, len(x.ids)+1)
		for _, known := range x.ids {
			x.seen[string(known)] = true
		}
	}
	x.twice = x.twice || x.seen[string(id)] || len(id) == 0
	x.seen[string(id)] = true
}

// indexID is an id as the index has it: a UUID in its canonical form as a zero byte and its 16 bytes.
func indexID(id string) string { return string(appendIndexID(nil, id)) }

func appendIndexID(to []byte, id string) []byte {
	if b, ok := envelope.ParseUUID(id); ok {
		return append(append(to, 0), b[:]...)
	}
	return append(to, id...)
}

// isPlain reports whether all messages have no more than the script's default.
func (x *shardPublish) isPlain() bool {
	for _, k := range x.kinds {
		if k != 1 {
			return false
		}
	}
	return !x.twice
}

// appendTo adds what lua/storing.lua reads.
func (x *shardPublish) appendTo(args []any, request, flags, replaces string) []any {
	kinds := ""
	if !x.isPlain() {
		kinds = string(x.kinds)
	}
	args = append(args, request, flags, replaces, len(x.at), kinds)
	return append(appendArgs(appendArgs(args, x.ids), x.data), x.more...)
}
