package protobuf_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ferrymq/ferry/codec/codectest"
	"github.com/ferrymq/ferry/codec/protobuf"
)

// shown is what Wire shows of a body, or its error.
func shown(t testing.TB, body []byte) (string, error) {
	t.Helper()
	var v any
	if err := codectest.Bounded(t, protobuf.Wire, body, &v); err != nil {
		return "", err
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Errorf("%x does not become JSON: %v", body, err)
	}
	return string(text), nil
}

// field is a field of bytes.
func field(n protowire.Number, content string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), content)
}

func varint(n protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, n, protowire.VarintType), v)
}

func TestWire(t *testing.T) {
	double := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 0x3ff8000000000000)
	float := protowire.AppendFixed32(protowire.AppendTag(nil, 1, protowire.Fixed32Type), 0x3fc00000)
	group := append(protowire.AppendTag(nil, 9, protowire.StartGroupType), varint(1, 5)...)
	group = protowire.AppendTag(group, 9, protowire.EndGroupType)
	uuid := strings.Repeat("u", 36)
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"empty":              {nil, `{}`},
		"order of the body":  {append(varint(12, 1), varint(2, 2)...), `{"12 varint":1,"2 varint":2}`},
		"repeated":           {slices.Concat(varint(1, 1), varint(2, 2), varint(1, 3)), `{"1 varint":[1,3],"2 varint":2}`},
		"two kinds":          {append(varint(1, 1), field(1, "tea")...), `{"1 varint":1,"1 text":"tea"}`},
		"more than a double": {varint(1, 1<<53), `{"1 varint":"9007199254740992"}`},
		"negative":           {varint(1, 1<<64-1), `{"1 varint":"18446744073709551615 (signed: -1)"}`},
		"double":             {double, `{"1 fixed64":"4609434218613702656 (double: 1.5)"}`},
		"float":              {float, `{"1 fixed32":"1069547520 (float: 1.5)"}`},
		"text":               {field(2, "世界"), `{"2 text":"世界"}`},
		"text of figures":    {field(2, "8080"), `{"2 text":"8080"}`}, // also the message {7: 56, 7: 56} and so on
		"lines":              {field(2, "one\ntwo"), `{"2 text":"one\ntwo"}`},
		"nothing":            {field(2, ""), `{"2 text":""}`},
		"bytes":              {field(2, "\xff\x00"), `{"2 bytes":"ff00"}`},
		"message":            {field(3, string(varint(1, 150))), `{"3 message":{"1 varint":150}}`},
		"message of a text":  {field(3, string(field(1, uuid))), `{"3 message":{"1 text":"` + uuid + `"}}`},
		"group":              {group, `{"9 group":{"1 varint":5}}`},
	} {
		if got, err := shown(t, c.body); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// TestWireRefuses: what is no message, or has too many fields, is an error; what it is not for as well.
func TestWireRefuses(t *testing.T) {
	many := bytes.Repeat(varint(1, 1), 20_001)
	for name, body := range map[string][]byte{"truncated": {8}, "field 0": {0, 1}, "end of no group": {12},
		"wrong wire type": {15}, "too many fields": many, "too many of a guess": field(1, string(many))} {
		if got, err := shown(t, body); err == nil || !strings.Contains(err.Error(), "protobuf: ") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if err := protobuf.Wire.Unmarshal(t.Context(), "", nil, new(string)); err == nil {
		t.Error("a string was made of it")
	}
	if _, err := protobuf.Wire.Marshal(t.Context(), "", 1); err == nil {
		t.Error("something was encoded")
	}
}

// TestWireIsBounded: what is nested too deep stays bytes.
func TestWireIsBounded(t *testing.T) {
	deep := varint(1, 1)
	for range 100 {
		deep = field(1, string(deep))
	}
	got, err := shown(t, deep)
	if depth := strings.Count(got, "message"); err != nil || depth != 32 || !strings.Contains(got, "bytes") {
		t.Errorf("%d deep, %v: %s", depth, err, got)
	}
	_, data := sample(t)
	codectest.Mangled(t, protobuf.Wire, data, func() any { return new(any) })
}

func FuzzWire(f *testing.F) {
	_, data := sample(f)
	f.Add(data)
	for _, data := range hostile() {
		f.Add(data)
	}
	f.Add(bytes.Repeat(field(1, string(varint(1, 1))), 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, err := shown(t, data)
		if err != nil {
			return
		}
		var back any
		if err := json.Unmarshal([]byte(text), &back); err != nil {
			t.Errorf("%x becomes %s: %v", data, text, err)
		}
	})
}
