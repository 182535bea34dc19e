package envelope

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/ferrymq/ferry/driver"
)

// What every message has is in one header of a Kafka record, because brokers and clients pay for each: the version, the
// checksum, how many of the headers that follow belong to the message, and the id, with a space between them.

// sealKafka sets the header at start, when those that follow are written.
func (w *pairWriter) sealKafka(start int, m *driver.Message) {
	block := w.pairs[start+1:]
	at := len(w.buf)
	w.buf = append(append(w.buf, versionText...), ' ')
	w.buf = append(appendSum(w.buf, formSum(Kafka, m.ID, block, m.Key, m.Body)), ' ')
	w.buf = append(strconv.AppendInt(w.buf, int64(len(block)), 10), ' ')
	w.buf = append(w.buf, m.ID...)
	w.pairs[start].Value = w.buf[at:len(w.buf):len(w.buf)]
}

// kafkaBlock returns what sealKafka wrote. What stands before the header, or behind those that belong to it, was added
// on the way, by a tracing agent for example, and is not part of the message.
func kafkaBlock(pairs []Pair) (id, sum []byte, block []Pair, err error) {
	at := 0
	for at < len(pairs) && pairs[at].Name != kafkaHeader {
		at++
	}
	if at == len(pairs) {
		return nil, nil, nil, damaged(fmt.Sprintf("there is no header %q", kafkaHeader), nil)
	}
	version, rest, _ := bytes.Cut(pairs[at].Value, space)
	if string(version) != versionText {
		return nil, nil, nil, unknownVersion(fmt.Sprintf("%.20q", version))
	}
	sum, rest, _ = bytes.Cut(rest, space)
	number, id, whole := bytes.Cut(rest, space)
	n, err := strconv.Atoi(string(number))
	pairs = pairs[at+1:]
	if err != nil || !whole || n < 0 || n > len(pairs) {
		return nil, nil, nil, damaged(
			fmt.Sprintf("header %q does not end in how many of the %d headers behind it are the message's, and its id",
				kafkaHeader, len(pairs)), nil)
	}
	return id, sum, pairs[:n], nil
}

var space = []byte{' '}
