package msgpack_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/codectest"
	"github.com/ferrymq/ferry/codec/msgpack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type order struct {
	ID    int            `json:"id"`
	Name  string         `codec:"name"`
	Raw   []byte         `json:"raw,omitempty"`
	At    time.Time      `json:"at"`
	Lines []line         `json:"lines,omitempty"`
	Next  *order         `json:"next,omitempty"`
	More  map[string]any `json:"more,omitempty"`
}

type line struct {
	Item string  `json:"item"`
	Sum  float64 `json:"sum"`
}

func sample(t testing.TB) (order, []byte) {
	t.Helper()
	o := order{
		ID: -42, Name: "茶", Raw: []byte{0, 0xff}, At: time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC),
		Lines: []line{{"pot", 19.9}}, Next: &order{ID: 1 << 40, At: time.Unix(0, 0).UTC()},
		More: map[string]any{"a": true, "b": nil},
	}
	data, err := msgpack.Codec.Marshal(t.Context(), "orders", o)
	if err != nil {
		t.Fatal(err)
	}
	return o, data
}

func TestRoundTrip(t *testing.T) {
	want, data := sample(t)
	var got order
	if err := msgpack.Codec.Unmarshal(t.Context(), "orders", data, &got); err != nil {
		t.Fatal(err)
	}
	got.At, got.Next.At = got.At.UTC(), got.Next.At.UTC()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, again := sample(t); !bytes.Equal(again, data) {
		t.Error("equal values have different bytes")
	}
	if c, ok := codec.ForContentType("application/msgpack; v=1", codec.JSON, msgpack.Codec); !ok || c != msgpack.Codec {
		t.Errorf("found %v", c)
	}
}

// Names of fields are those that the tags say, and unknown ones are skipped.
func TestFields(t *testing.T) {
	_, data := sample(t)
	var all map[string]any
	if err := msgpack.Codec.Unmarshal(t.Context(), "orders", data, &all); err != nil || all["name"] != "茶" ||
		all["more"].(map[string]any)["a"] != true {
		t.Errorf("got %v, error %v", all, err)
	}
	if raw, ok := all["raw"].([]byte); !ok || string(raw) != "\x00\xff" {
		t.Errorf("bytes became %T", all["raw"])
	}
	var part struct {
		Name string `json:"name"`
	}
	if err := msgpack.Codec.Unmarshal(t.Context(), "orders", data, &part); err != nil || part.Name != "茶" {
		t.Errorf("got %v, error %v", part, err)
	}
	if err := msgpack.Codec.Unmarshal(t.Context(), "orders", data, new(int)); err == nil {
		t.Error("an object was decoded as a number")
	}
	if _, err := msgpack.Codec.Marshal(t.Context(), "orders", func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

func hostile() map[string][]byte {
	return map[string][]byte{
		"deep":       bytes.Repeat([]byte{0x91}, 10000),
		"deep maps":  bytes.Repeat([]byte{0x81, 0xa1, 'a'}, 10000),
		"long array": {0xdd, 0xff, 0xff, 0xff, 0xff, 1},
		"long map":   {0xdf, 0xff, 0xff, 0xff, 0xff, 0xa1, 'a', 1},
		"long bytes": {0xc6, 0xff, 0xff, 0xff, 0xff, 1},
		"long text":  {0xdb, 0xff, 0xff, 0xff, 0xff, 1},
		"long ext":   {0xc9, 0xff, 0xff, 0xff, 0xff, 1, 1},
		"reserved":   {0xc1},
		"key is map": {0x81, 0x80, 1},
		"two values": {1, 2},
		"nothing":    {},
	}
}

func TestHostile(t *testing.T) {
	for name, data := range hostile() {
		for _, v := range []any{new(any), new(order), new([]line), new([]byte), new(string), new(map[string]any)} {
			if err := codectest.Bounded(t, msgpack.Codec, data, v); err == nil {
				t.Errorf("%s: decoded into a %T", name, v)
			}
		}
	}
	_, data := sample(t)
	for _, target := range []func() any{func() any { return new(order) }, func() any { return new(any) }} {
		codectest.Mangled(t, msgpack.Codec, data, target)
	}
}

func FuzzUnmarshal(f *testing.F) {
	_, data := sample(f)
	f.Add(data)
	for _, data := range hostile() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, v := range []any{new(any), new(order), new([]line), new(map[string]any)} {
			if err := codectest.Bounded(t, msgpack.Codec, data, v); err != nil {
				continue
			}
			if _, err := msgpack.Codec.Marshal(t.Context(), "orders", v); err != nil {
				t.Errorf("a decoded %T cannot be encoded: %v", v, err)
			}
		}
	})
}
