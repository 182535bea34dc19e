package protobuf

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ferrymq/ferry/codec"
)

// Bounds of what Wire decodes: what is nested deeper stays bytes, and a body with more fields is an error.
const (
	maxWireDepth  = 32
	maxWireFields = 20_000
)

// Wire decodes bodies whose type is not known into an any, for people to look at: it shows what stands on the wire, as
// protoc --decode_raw does. As JSON that is an object whose names are field numbers and wire types ("1 varint"), in the
// order of the body; of a field that is repeated, a list. Whether so many bytes are a text or a message is a guess. It
// encodes nothing.
var Wire codec.Codec = wire{}

type wire struct{}

var _ codec.Nameless = wire{}

// ContentType returns "application/protobuf".
func (wire) ContentType() string { return protobuf{}.ContentType() }

// Nameless says that masks find no names in what is decoded.
func (wire) Nameless() {}

// Marshal returns an error.
func (wire) Marshal(context.Context, string, any) ([]byte, error) {
	return nil, errors.New("protobuf: without a type nothing can be encoded: use protobuf.Codec")
}

// Unmarshal decodes into a *any.
func (wire) Unmarshal(_ context.Context, _ string, data []byte, v any) error {
	to, ok := v.(*any)
	if !ok || to == nil {
		return fmt.Errorf("protobuf: without a type there is nothing to make a %T of: use *any, or protobuf.Codec", v)
	}
	r := wireReader{left: maxWireFields}
	fields, err := r.message(data, 0)
	if err != nil {
		return err
	}
	*to = fields
	return nil
}

// wireField is what all the fields of a message with one number and one kind say.
type wireField struct {
	name   string
	values []any
}

// wireFields are in the order in which they begin.
type wireFields []wireField

// MarshalJSON writes an object in the order of the fields, which a map has not.
func (all wireFields) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range all {
		var value any = f.values
		if len(f.values) == 1 {
			value = f.values[0]
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", f.name, text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// wireReader reads one body. Guesses that fail count as well, so that no body takes long.
type wireReader struct{ left int }

var errWireFields = fmt.Errorf("protobuf: it has more than %d fields: look at its bytes", maxWireFields)

func (r *wireReader) message(data []byte, depth int) (wireFields, error) {
	var all wireFields
	at := make(map[string]int)
	for len(data) > 0 {
		if r.left--; r.left < 0 {
			return nil, errWireFields
		}
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, noMessage(n)
		}
		name, value, size, err := r.value(number, kind, data[n:], depth)
		if err != nil {
			return nil, err
		}
		data = data[n+size:]
		name = strconv.Itoa(int(number)) + " " + name
		i, seen := at[name]
		if !seen {
			i = len(all)
			at[name], all = i, append(all, wireField{name: name})
		}
		all[i].values = append(all[i].values, value)
	}
	return all, nil
}

// value reads the value of a field, and returns what it is called and how many bytes it has.
func (r *wireReader) value(number protowire.Number, kind protowire.Type, data []byte, depth int) (
	name string, value any, n int, err error,
) {
	switch kind {
	case protowire.VarintType:
		v, size := protowire.ConsumeVarint(data)
		name, value, n = "varint", varint(v), size
	case protowire.Fixed32Type:
		v, size := protowire.ConsumeFixed32(data)
		name, value, n = "fixed32", fmt.Sprintf("%d (float: %g)", v, math.Float32frombits(v)), size
	case protowire.Fixed64Type:
		v, size := protowire.ConsumeFixed64(data)
		name, value, n = "fixed64", fmt.Sprintf("%d (double: %g)", v, math.Float64frombits(v)), size
	case protowire.BytesType:
		v, size := protowire.ConsumeBytes(data)
		if n = size; n >= 0 {
			name, value, err = r.guess(v, depth)
		}
	case protowire.StartGroupType:
		v, size := protowire.ConsumeGroup(number, data)
		if n = size; n >= 0 {
			name, value, err = r.group(v, depth)
		}
	default:
		return "", nil, 0, noMessage(-1)
	}
	if n < 0 {
		err = noMessage(n)
	}
	return name, value, n, err
}

// maxSafe is the largest integer that JavaScript does not round.
const maxSafe = 1<<53 - 1

// varint is a number, or a text where readers of JSON would round it: negative ones are among the largest.
func varint(v uint64) any {
	switch {
	case v <= maxSafe:
		return v
	case v > math.MaxInt64:
		return fmt.Sprintf("%d (signed: %d)", v, int64(v))
	}
	return strconv.FormatUint(v, 10)
}

func (r *wireReader) group(data []byte, depth int) (string, any, error) {
	if depth >= maxWireDepth {
		return "group", hex.EncodeToString(data), nil
	}
	fields, err := r.message(data, depth+1)
	return "group", fields, err
}

// guess tells what bytes are. Many short texts are messages as well ("hi", "8080"), so that a text on one line is taken
// for one; a message has a byte that no such text has, nearly always.
func (r *wireReader) guess(data []byte, depth int) (string, any, error) {
	text := utf8.Valid(data)
	if text && !strings.ContainsFunc(string(data), unicode.IsControl) {
		return "text", string(data), nil
	}
	if depth < maxWireDepth {
		switch fields, err := r.message(data, depth+1); {
		case err == nil:
			return "message", fields, nil
		case errors.Is(err, errWireFields):
			return "", nil, err
		}
	}
	if text && !strings.ContainsFunc(string(data), breaksText) {
		return "text", string(data), nil
	}
	return "bytes", hex.EncodeToString(data), nil
}

// breaksText reports whether a character is in no text of several lines.
func breaksText(c rune) bool { return unicode.IsControl(c) && !strings.ContainsRune("\n\r\t", c) }

func noMessage(n int) error {
	return fmt.Errorf("protobuf: not a message: correct the producer, or its content type: %w", protowire.ParseError(n))
}
