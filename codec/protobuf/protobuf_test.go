package protobuf_test

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/codectest"
	"github.com/ferrymq/ferry/codec/protobuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sample(t testing.TB) (*structpb.Value, []byte) {
	t.Helper()
	v, err := structpb.NewValue(map[string]any{"name": "tea", "n": 3.0, "tags": []any{"a", true, nil}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := protobuf.Codec.Marshal(t.Context(), "orders", v)
	if err != nil {
		t.Fatal(err)
	}
	return v, data
}

func TestRoundTrip(t *testing.T) {
	want, data := sample(t)
	var made *structpb.Value // as in a ferry.Msg[*structpb.Value]
	if err := protobuf.Codec.Unmarshal(t.Context(), "orders", data, &made); err != nil || !proto.Equal(made, want) {
		t.Errorf("got %v, error %v", made, err)
	}
	given := new(structpb.Value)
	if err := protobuf.Codec.Unmarshal(t.Context(), "orders", data, given); err != nil || !proto.Equal(given, want) {
		t.Errorf("got %v, error %v", given, err)
	}
	d := &ferry.Delivery{Message: &ferry.Message{Topic: "orders", ContentType: "application/protobuf", Body: data}}
	if c, ok := codec.ForContentType(d.ContentType, codec.JSON, protobuf.Codec); !ok || c != protobuf.Codec {
		t.Errorf("found %v", c)
	}
}

func TestWhatIsNoMessage(t *testing.T) {
	for name, v := range map[string]any{"text": "tea", "nil": nil, "nil message": (*structpb.Value)(nil)} {
		if _, err := protobuf.Codec.Marshal(t.Context(), "orders", v); err == nil || !strings.Contains(err.Error(), ":") {
			t.Errorf("%s was encoded, or the error says nothing: %v", name, err)
		}
	}
	var text string
	for name, v := range map[string]any{"text": &text, "nil": nil, "nil message": (*structpb.Value)(nil),
		"pointer to text": new(*string)} {
		if err := protobuf.Codec.Unmarshal(t.Context(), "orders", nil, v); err == nil {
			t.Errorf("nothing was decoded into %s", name)
		}
	}
}

func hostile() map[string][]byte {
	deep := []byte(nil)
	for range protobuf.MaxDepth + 1 { // a list of one value that is a list ...
		list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), deep)
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 6, protowire.BytesType), list)
	}
	return map[string][]byte{
		"deep":      deep,
		"length":    protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.BytesType), 1<<40),
		"no text":   protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), []byte{0xff}),
		"truncated": {0x1a, 5, 'a'},
		"endless":   bytes.Repeat([]byte{0x80}, 100),
	}
}

func TestHostile(t *testing.T) {
	for name, data := range hostile() {
		if err := codectest.Bounded(t, protobuf.Codec, data, new(structpb.Value)); err == nil ||
			!strings.Contains(err.Error(), "google.protobuf.Value") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	_, data := sample(t)
	codectest.Mangled(t, protobuf.Codec, data, func() any { return new(*structpb.Value) })
}

func FuzzUnmarshal(f *testing.F) {
	_, data := sample(f)
	f.Add(data)
	for _, data := range hostile() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v := new(structpb.Value)
		if err := codectest.Bounded(t, protobuf.Codec, data, v); err == nil {
			if _, err := protobuf.Codec.Marshal(t.Context(), "orders", v); err != nil {
				t.Error(err)
			}
		}
		_ = codectest.Bounded(t, protobuf.Codec, data, new(timestamppb.Timestamp))
	})
}
