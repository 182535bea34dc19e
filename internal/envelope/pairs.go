package envelope

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
	"google.golang.org/protobuf/encoding/protowire"
)

const versionText = "1" // Version, as a pair has it

// ToFields appends the pairs of m in form f to dst. With Kafka the caller sets the key and the value of the record to
// Key and Body. The values share one buffer that belongs to the caller; that of the body is m.Body itself.
func ToFields(f Form, dst []Pair, m *driver.Message) []Pair {
	return ToFieldsIn(f, dst, make([]byte, 0, FieldsRoom), m)
}

// FieldsRoom is enough for the values of most messages without headers.
const FieldsRoom = 96

// ToFieldsIn is ToFields with a buffer for the values. They are somewhere else where it is too small.
func ToFieldsIn(f Form, dst []Pair, buf []byte, m *driver.Message) []Pair {
	w := pairWriter{form: f, pairs: dst, buf: buf}
	start := len(dst)
	if f == Kafka {
		w.pairs = append(w.pairs, Pair{Name: kafkaHeader}) // sealKafka sets it
		w.options(m)
		w.sealKafka(start, m)
		return w.pairs
	}
	w.text(numVersion, versionText)
	w.text(numID, m.ID)
	w.options(m)
	at := len(w.buf)
	w.buf = appendSum(w.buf, formSum(f, "", w.pairs[start:], m.Key, m.Body))
	w.add(f.name(numCRC), at)
	w.text(numKey, m.Key)
	w.pairs = append(w.pairs, Pair{f.name(numBody), m.Body})
	return w.pairs
}

// options appends all but the version, the id, the key, the body and the checksum.
func (w *pairWriter) options(m *driver.Message) {
	if m.OwnID {
		w.int(numOwnID, 1)
	}
	w.text(numTopic, m.Topic)
	w.text(numContentType, m.ContentType)
	w.headers(m.Headers)
	w.int(numPriority, int64(m.Priority))
	w.time(numPublishedAt, m.PublishedAt)
	w.int(numDelay, int64(m.Delay))
	w.int(numTTL, int64(m.TTL))
	w.time(numAt, m.At)
	w.text(numDedupID, m.DedupID)
	w.int(numDedupWindow, int64(m.DedupWindow))
	w.int(numMaxAttempts, int64(m.MaxAttempts))
	if m.Retry != nil {
		at := len(w.buf)
		w.buf = appendRetry(w.buf, m.Retry)
		w.add(w.form.name(numRetry), at)
	}
}

func appendSum(dst []byte, sum uint32) []byte {
	var bytes [4]byte
	binary.BigEndian.PutUint32(bytes[:], sum)
	return hex.AppendEncode(dst, bytes[:])
}

// pairWriter appends pairs whose values are parts of one buffer. What is zero is left out.
type pairWriter struct {
	form  Form
	pairs []Pair
	buf   []byte
}

// add makes what was appended to buf since at the value of a pair.
func (w *pairWriter) add(name string, at int) {
	w.pairs = append(w.pairs, Pair{name, w.buf[at:len(w.buf):len(w.buf)]})
}

func (w *pairWriter) text(num int, s string) {
	if s != "" {
		at := len(w.buf)
		w.buf = append(w.buf, s...)
		w.add(w.form.name(num), at)
	}
}

func (w *pairWriter) int(num int, n int64) {
	if n != 0 {
		w.number(num, n)
	}
}

func (w *pairWriter) time(num int, t time.Time) {
	if !t.IsZero() {
		w.number(num, unixNano(t))
	}
}

func (w *pairWriter) number(num int, n int64) {
	at := len(w.buf)
	w.buf = strconv.AppendInt(w.buf, n, 10)
	w.add(w.form.name(num), at)
}

func (w *pairWriter) headers(headers map[string]string) {
	if len(headers) == 0 {
		return
	}
	var room [16]string
	for _, name := range sortedNames(room[:0], headers) {
		at := len(w.buf)
		w.buf = append(w.buf, headers[name]...)
		w.add(w.form.headerName(name), at)
	}
}

// FromFields reads what ToFields wrote into m, whose Key and Body the caller has set with Kafka. With Stream the Body
// is the value of its pair; everything else is copied. After an error the content of m is of no use.
func FromFields(f Form, pairs []Pair, m *driver.Message) error {
	var id, sum []byte
	var block []Pair
	var err error
	if f == Kafka {
		id, sum, block, err = kafkaBlock(pairs)
	} else {
		block, sum, err = streamBlock(pairs)
		m.Key, m.Body = streamContent(pairs)
	}
	if err != nil {
		return err
	}
	var stored [sumDigits / 2]byte
	if n, err := hex.Decode(stored[:], sum[:min(len(sum), sumDigits)]); err != nil || n != len(stored) ||
		len(sum) != sumDigits {
		return damaged(fmt.Sprintf("its checksum is %.20q, not 8 hexadecimal digits", sum), nil)
	}
	if err := checkSum(binary.BigEndian.Uint32(stored[:]), formSum(f, id, block, m.Key, m.Body)); err != nil {
		return err
	}
	*m = driver.Message{ID: string(id), Key: m.Key, Body: m.Body}
	for _, p := range block {
		if f.native(p.Name) {
			continue
		}
		if err := f.setPair(m, p); err != nil {
			return err
		}
	}
	return nil
}

const sumDigits = 8

// streamContent returns the key and the body, which stand behind the checksum.
func streamContent(pairs []Pair) (key string, body []byte) {
	for _, p := range pairs {
		switch p.Name {
		case Stream.name(numKey):
			key = string(p.Value)
		case Stream.name(numBody):
			body = p.Value
		}
	}
	return key, body
}

// setPair turns a pair into the value that the envelope would have, so that both forms end in setField.
func (f Form) setPair(m *driver.Message, p Pair) error {
	num, ok := formNumbers[f][p.Name]
	if !ok {
		if name, ok := f.userName(p.Name); ok {
			if m.Headers == nil {
				m.Headers = make(map[string]string)
			}
			m.Headers[name] = string(p.Value)
		}
		return nil
	}
	v := value{field: protowire.Number(num), data: p.Value}
	switch k := messageFields[num-1].kind; k {
	case kindBool, kindInt64, kindSint32, kindSfixed64:
		n, err := strconv.ParseInt(string(p.Value), 10, 64)
		if err != nil {
			return damaged(fmt.Sprintf("field %q is %.40q, not a whole number", p.Name, p.Value), nil)
		}
		v.num = uint64(n)
		if k == kindSint32 {
			v.num = protowire.EncodeZigZag(n)
		}
	case kindUint32: // the version was checked
		return nil
	}
	return setField(m, v)
}
