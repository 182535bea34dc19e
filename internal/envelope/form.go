package envelope

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
)

// Form is one way to spread a message over named values instead of one envelope, readable by other tools.
type Form uint8

const (
	// Stream is an entry of a Redis stream: every field has a name, user headers begin with "h:".
	Stream Form = iota
	// Kafka is the headers of a record, whose key and value are Key and Body. Ferry's are "ferry", see kafka.go, and begin
	// with "ferry-".
	Kafka
)

// Pair is one stream field or Kafka header.
type Pair struct {
	Name  string
	Value []byte
}

const (
	streamHeader = "h:"
	kafkaHeader  = "ferry"
	kafkaPrefix  = "ferry-"
	kafkaEscape  = "ferry-header-" // before a user header that looks like one of Ferry's
)

// formNumbers finds the field of a name, per form. What kafkaHeader holds is not among them.
var formNumbers = [...]map[string]int{Stream: numbers(Stream), Kafka: numbers(Kafka)}

func numbers(f Form) map[string]int {
	m := make(map[string]int)
	for num := len(messageFields); num > 0; num-- {
		if name := f.name(num); name != "" && name != kafkaHeader && num != numIDUUID && num != numContentTypeCode {
			m[name] = num
		}
	}
	return m
}

// name returns what a field is called in this form, or "".
func (f Form) name(num int) string {
	if f == Kafka {
		return messageFields[num-1].kafka
	}
	return messageFields[num-1].stream
}

// headerName returns what a header of a message is called in this form.
func (f Form) headerName(name string) string {
	switch {
	case f == Stream:
		return streamHeader + name
	case KafkaOwn(name):
		return kafkaEscape + name
	}
	return name
}

// userName undoes headerName. It reports false for a name that is Ferry's own, of a later version for example.
func (f Form) userName(name string) (string, bool) {
	if f == Stream {
		return strings.CutPrefix(name, streamHeader)
	}
	if user, ok := strings.CutPrefix(name, kafkaEscape); ok {
		return user, true
	}
	return name, !KafkaOwn(name)
}

// KafkaOwn reports whether a header of a record is Ferry's.
func KafkaOwn(name string) bool { return name == kafkaHeader || strings.HasPrefix(name, kafkaPrefix) }

// formSum is the checksum of a form: of some pairs the lengths and bytes of name and value, then the length of the key,
// the key, and the body. With Kafka the length and the bytes of the id come first. Lengths are 32 bits, little endian.
func formSum[T string | []byte](f Form, id T, block []Pair, key string, body []byte) uint32 {
	room := summed.Get().(*[]byte)
	text := (*room)[:0]
	if f == Kafka {
		text = appendSized(text, id)
	}
	for _, p := range block {
		if !f.native(p.Name) {
			text = appendSized(appendSized(text, p.Name), p.Value)
		}
	}
	text = appendSized(text, key)
	sum := crc32.Update(crc32.Checksum(text, castagnoli), castagnoli, body)
	if *room = text; cap(text) <= 4<<10 { // of more it keeps nothing
		summed.Put(room)
	}
	return sum
}

// summed are reused: what is summed up leaves the stack on its way, for every message. That is one allocation instead
// of six (BenchmarkToFieldsKafka/plain).
var summed = sync.Pool{New: func() any { return new([]byte) }}

func appendSized[T string | []byte](dst []byte, v T) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(v))), v...)
}

// native reports whether a name is that of the key or the body, which are summed apart from the pairs.
func (f Form) native(name string) bool {
	return f == Stream && (name == messageFields[numKey-1].stream || name == messageFields[numBody-1].stream)
}

// streamBlock returns the pairs from the version up to the checksum, and the checksum. What stands before or after was
// added on the way, by a tracing agent for example, and is not part of the message.
func streamBlock(pairs []Pair) (block []Pair, sum []byte, err error) {
	const f = Stream
	first, last := -1, -1
	for i := range pairs {
		switch pairs[i].Name {
		case f.name(numVersion):
			if first < 0 {
				first = i
			}
		case f.name(numCRC):
			last = i
		}
	}
	if first < 0 {
		return nil, nil, damaged(fmt.Sprintf("there is no field %q", f.name(numVersion)), nil)
	}
	if v := string(pairs[first].Value); v != versionText {
		return nil, nil, unknownVersion(fmt.Sprintf("%.20q", v))
	}
	if last < first {
		return nil, nil, damaged(fmt.Sprintf("there is no field %q after the version", f.name(numCRC)), nil)
	}
	return pairs[first:last], pairs[last].Value, nil
}
