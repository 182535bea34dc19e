package value_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/codec/codectest"
	"github.com/ferrymq/ferry/codec/msgpack"
	"github.com/ferrymq/ferry/codec/msgpack/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	data, err := msgpack.Codec.Marshal(t.Context(), "orders", v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestReadsWhatTheCodecWrites: every form that package msgpack writes is read as the same value.
func TestReadsWhatTheCodecWrites(t *testing.T) {
	long := strings.Repeat("茶", 30000)
	many := make([]any, 70000)
	for _, want := range []any{
		nil, true, false, int64(0), int64(127), int64(-1), int64(-32), int64(-33), int64(-128), int64(-129),
		int64(-32769), int64(math.MinInt32 - 1), int64(math.MinInt64), 1.5, float32(0.25), "", "茶", long[:60],
		long[:600], long, []byte{0, 0xff}, bytes.Repeat([]byte{1}, 300), bytes.Repeat([]byte{1}, 70000),
		[]any{}, []any{int64(1), "a"}, make([]any, 20), many,
		map[string]any{}, map[string]any{"a": map[string]any{"b": []any{nil}}},
		time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC),
		time.Date(1901, 1, 2, 3, 4, 5, 6, time.UTC),
	} {
		var got any
		err := value.Reader.Unmarshal(t.Context(), "orders", encoded(t, want), &got)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %.60v (%T), want %.60v (%T), error %v", got, got, want, want, err)
		}
	}
}

// TestNumbersKeepTheirSize: of whole numbers that have no sign, and of each length.
func TestNumbersKeepTheirSize(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{"\xcc\xff", "255"}, {"\xcd\xff\xff", "65535"}, {"\xce\xff\xff\xff\xff", "4294967295"},
		{"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"},
		{"\xd0\x80", "-128"}, {"\xd1\x80\x00", "-32768"}, {"\xd2\x80\x00\x00\x00", "-2147483648"},
		{"\x82\x01\x02\xc4\x01k\xc0", `{"1":2,"k":null}`},
		{"\xd4\x05\x01", `{"type":5,"data":"AQ=="}`}, {"\xc7\x02\x05\x01\x02", `{"type":5,"data":"AQI="}`},
		{"\xd5\xff\x00\x00", `{"type":-1,"data":"AAA="}`}, // no form of a time
	} {
		var v any
		err := value.Reader.Unmarshal(t.Context(), "orders", []byte(c.data), &v)
		got, _ := json.Marshal(v)
		if err != nil || string(got) != c.want {
			t.Errorf("%x: got %s, want %s, error %v", c.data, got, c.want, err)
		}
	}
}

// TestRefused: what is no value, no text for a key, or not asked for as any.
func TestRefused(t *testing.T) {
	for _, data := range []string{"", "\xc1", "\x01\x01", "\x91", "\x81\x80\x01", "\x81\xcb01234567\x01",
		"\xdd\xff\xff\xff\xff\x01", strings.Repeat("\x91", 10000), "\xc6\xff\xff\xff\xff\x01"} {
		var v any
		if err := codectest.Bounded(t, value.Reader, []byte(data), &v); err == nil {
			t.Errorf("%.20x was read as %v", data, v)
		}
	}
	if err := value.Reader.Unmarshal(t.Context(), "orders", []byte{1}, new(int)); err == nil {
		t.Error("read into an int")
	}
	if _, err := value.Reader.Marshal(context.Background(), "orders", 1); err == nil {
		t.Error("it wrote")
	}
	codectest.Mangled(t, value.Reader, encoded(t, map[string]any{"a": []any{1, "b", 2.5, []byte{1}, time.Now()}}),
		func() any { return new(any) })
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte("\x82\x01\x02\xc4\x01k\xc0"))
	f.Add(encoded(f, map[string]any{"a": []any{1, "b", 2.5, []byte{1}, time.Now()}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		_ = codectest.Bounded(t, value.Reader, data, &v)
	})
}
