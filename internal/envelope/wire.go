package envelope

import (
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

func appendUint(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

func appendInt(dst []byte, num protowire.Number, v int64) []byte {
	return appendUint(dst, num, uint64(v))
}

func appendBool(dst []byte, num protowire.Number, v bool) []byte {
	return appendUint(dst, num, protowire.EncodeBool(v))
}

func appendDouble(dst []byte, num protowire.Number, v float64) []byte {
	bits := math.Float64bits(v)
	if bits == 0 {
		return dst
	}
	return protowire.AppendFixed64(protowire.AppendTag(dst, num, protowire.Fixed64Type), bits)
}

// appendTime leaves out the zero time only: 1970 is a time.
func appendTime(dst []byte, num protowire.Number, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return protowire.AppendFixed64(protowire.AppendTag(dst, num, protowire.Fixed64Type), uint64(unixNano(t)))
}

func appendText[T string | []byte](dst []byte, num protowire.Number, v T) []byte {
	if len(v) == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, num, protowire.BytesType)
	return append(protowire.AppendVarint(dst, uint64(len(v))), v...)
}

// nest makes what was appended since start a nested message: it moves it to make room for tag and length.
func nest(dst []byte, start int, num protowire.Number) []byte {
	var room [2 * 10]byte
	head := protowire.AppendVarint(protowire.AppendTag(room[:0], num, protowire.BytesType), uint64(len(dst)-start))
	end := len(dst)
	dst = append(dst, head...)
	copy(dst[start+len(head):], dst[start:end])
	copy(dst[start:], head)
	return dst
}

// The times that an int64 of Unix nanoseconds reaches, in 1677 and 2262.
var firstTime, lastTime = timeOf(math.MinInt64), timeOf(math.MaxInt64)

// unixNano is t.UnixNano, but the nearest that can be told for a time beyond those.
func unixNano(t time.Time) int64 {
	switch {
	case t.After(lastTime):
		return math.MaxInt64
	case t.Before(firstTime):
		return math.MinInt64
	}
	return t.UnixNano()
}

func timeOf(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// value is one field as read: num holds varints and fixed numbers, data the rest, which is part of the input.
type value struct {
	field protowire.Number
	num   uint64
	data  []byte
}

func (v value) int64() int64        { return int64(v.num) }
func (v value) bool() bool          { return v.num != 0 }
func (v value) time() time.Time     { return timeOf(int64(v.num)) }
func (v value) wait() time.Duration { return time.Duration(v.num) }
func (v value) text() string        { return string(v.data) }
func (v value) double() float64     { return math.Float64frombits(v.num) }

// number is an int that was stored as 64 bits.
func (v value) number() (int, error) { return toInt(int64(v.num)) }

func toInt(n int64) (int, error) {
	if n > math.MaxInt || n < math.MinInt {
		return 0, damaged("the number "+strconv.FormatInt(n, 10)+" is out of range", nil)
	}
	return int(n), nil
}

// next reads one field and returns it with the rest of data. A field that t does not know has the number 0.
func (t table) next(data []byte) (value, []byte, error) {
	num, typ, n := protowire.ConsumeTag(data)
	if n < 0 {
		return value{}, nil, damaged("a field is cut off", protowire.ParseError(n))
	}
	data = data[n:]
	if int(num) > len(t) {
		n = protowire.ConsumeFieldValue(num, typ, data)
		if n < 0 {
			return value{}, nil, damaged("field "+strconv.Itoa(int(num))+" is cut off", protowire.ParseError(n))
		}
		return value{}, data[n:], nil
	}
	f := &t[num-1]
	if typ != kinds[f.kind].wire && (f.kind != kindInt64s || typ != protowire.VarintType) {
		return value{}, nil, damaged("field "+f.name+" has the wrong type", nil)
	}
	v := value{field: num}
	switch typ {
	case protowire.VarintType:
		v.num, n = protowire.ConsumeVarint(data)
	case protowire.Fixed64Type:
		v.num, n = protowire.ConsumeFixed64(data)
	case protowire.Fixed32Type:
		var u uint32
		u, n = protowire.ConsumeFixed32(data)
		v.num = uint64(u)
	default:
		v.data, n = protowire.ConsumeBytes(data)
	}
	if n < 0 {
		return value{}, nil, damaged("field "+f.name+" is cut off", protowire.ParseError(n))
	}
	return v, data[n:], nil
}

// each calls set with every field of data that t knows.
func (t table) each(data []byte, set func(value) error) error {
	for len(data) > 0 {
		v, rest, err := t.next(data)
		if err != nil {
			return err
		}
		data = rest
		if v.field == 0 {
			continue
		}
		if err := set(v); err != nil {
			return err
		}
	}
	return nil
}
