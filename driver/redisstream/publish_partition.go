package redisstream

import (
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// partitionPublish is what goes to one partition in one script.
type partitionPublish struct {
	part  *partition
	at    []int // places of the messages in the call
	plain bool  // nothing but plain messages: see lua/publish.lua
	// the script that takes them, and its arguments
	script *script
	args   []any
}

// add takes in a message.
func (x *partitionPublish) add(i int, m *driver.Message) {
	x.at = append(x.at, i)
	x.plain = x.plain && isPlain(m)
}

// isPlain tells whether a message is only added to the stream.
func isPlain(m *driver.Message) bool {
	return m.Delay <= 0 && m.At.IsZero() && m.TTL == 0 && m.DedupID == "" && !m.OwnID
}

// encode makes the arguments of the script.
func (x *partitionPublish) encode(msgs []*driver.Message, flags string) {
	if x.plain {
		x.script = &x.part.d.scripts.publish
		x.encodePlain(msgs, strings.Trim(flags, "a"))
		return
	}
	x.script = &x.part.d.scripts.store
	x.args = append(make([]any, 0, 2+16*len(x.at)), flags, len(x.at))
	for _, i := range x.at {
		x.args = append(x.args, argsOf(msgs[i])...)
	}
}

// shapeList are the different lists of field names in what goes to a partition: nearly always one.
type shapeList struct {
	names [][]string
	head  []any // as the script reads them
}

// of returns the number of the shape of some fields, from 1.
func (l *shapeList) of(pairs []envelope.Pair) int {
	for n, names := range l.names {
		same := len(names) == len(pairs)
		for i := 0; same && i < len(names); i++ {
			same = names[i] == pairs[i].Name
		}
		if same {
			return n + 1
		}
	}
	names := make([]string, len(pairs))
	l.head = append(l.head, len(pairs))
	for i, p := range pairs {
		names[i] = p.Name
		l.head = append(l.head, p.Name)
	}
	l.names = append(l.names, names)
	return len(l.names)
}

// encodePlain makes the arguments of lua/publish.lua.
func (x *partitionPublish) encodePlain(msgs []*driver.Message, flags string) {
	var shapes shapeList
	values, kinds := make([]any, 0, 5*len(x.at)), make([]int, len(x.at))
	ends := make([]int, len(x.at))
	size, prio := 0, 0
	var room [16]envelope.Pair
	for n, i := range x.at {
		pairs := pairsOf(room[:0], msgs[i])
		for _, p := range pairs {
			size += len(p.Name) + len(p.Value)
		}
		for _, p := range pairs[1:] { // the first is the version
			values = append(values, p.Value)
		}
		kinds[n], ends[n] = shapes.of(pairs[2:]), len(values) // the second is the id
		if msgs[i].Priority != driver.Normal {
			prio = n + 1
		}
	}
	x.args = append(make([]any, 0, 5+len(shapes.head)+len(values)+len(x.at)), flags, len(x.at), size,
		prio, len(shapes.names))
	x.args = append(x.args, shapes.head...)
	if len(shapes.names) == 1 {
		x.args = append(x.args, values...)
		return
	}
	begin := 0
	for n, end := range ends {
		x.args = append(append(x.args, kinds[n]), values[begin:end]...)
		begin = end
	}
}

// pairsOf appends the fields of the entry that a message becomes: first the version, then the id.
func pairsOf(dst []envelope.Pair, m *driver.Message) []envelope.Pair {
	stored := *m
	stored.Topic, stored.PublishedAt = "", time.Time{}
	return envelope.ToFields(envelope.Stream, dst, &stored)
}

// fieldsOf are the fields of the entry that a message becomes, and their size.
func fieldsOf(m *driver.Message) (fields redisconn.Reply, size int) {
	for _, p := range pairsOf(nil, m) {
		fields = append(fields, p.Name, p.Value)
		size += len(p.Name) + len(p.Value)
	}
	return fields, size
}

func argsOf(m *driver.Message) []any {
	fields, size := fieldsOf(m)
	return append([]any{m.ID, redisconn.DelayText(m), redisconn.Milliseconds(m.TTL), m.DedupID,
		redisconn.Milliseconds(m.DedupWindow), redisconn.Flag(m.OwnID), size, len(fields)}, fields...)
}
