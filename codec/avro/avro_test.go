package avro_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/codec"
	"github.com/ferrymq/ferry/codec/avro"
	"github.com/ferrymq/ferry/codec/codectest"
	"github.com/ferrymq/ferry/codec/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newFake(t testing.TB, opts ...srfake.Option) *srfake.Registry {
	t.Helper()
	f := srfake.New(opts...)
	t.Cleanup(f.Close)
	return f
}

func newCodec(t testing.TB, f *srfake.Registry, types ...avro.Type) *avro.Codec {
	t.Helper()
	r, err := registry.New(registry.Options{URLs: []string{f.URL()}, Register: true, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	c, err := avro.New(r, types...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type order struct {
	ID    int64             `avro:"id"`
	Name  string            `avro:"name"`
	Note  *string           `avro:"note"`
	At    time.Time         `avro:"at"`
	Lines []line            `avro:"lines"`
	Tags  map[string]string `avro:"tags"`
	Next  *order            `avro:"next"`
}

type line struct {
	Item string  `avro:"item"`
	Sum  float64 `avro:"sum"`
}

func sample() order {
	note := "in a hurry"
	return order{
		ID: 42, Name: "茶", Note: &note, At: time.UnixMilli(1_767_322_800_123).UTC(), Lines: []line{{"pot", 19.9}},
		Tags: map[string]string{"a": "b"},
		Next: &order{ID: 43, At: time.UnixMilli(0).UTC(), Lines: []line{}, Tags: map[string]string{}},
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := newCodec(t, f, avro.Infer[order]("shop"))
	want := sample()
	for _, v := range []any{want, &want} {
		data, err := c.Marshal(t.Context(), "orders", v)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := f.GetSchema("orders-value", 1); !ok || string(data[:5]) != string(registry.AppendHeader(nil, s.ID)) {
			t.Errorf("schema %+v, header %x", s, data[:5])
		}
		var got order
		if err := c.Unmarshal(t.Context(), "orders", data, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, error %v", got, err)
		}
		var pointer *order
		if err := c.Unmarshal(t.Context(), "orders", data, &pointer); err != nil || !reflect.DeepEqual(*pointer, want) {
			t.Errorf("got %+v, error %v", pointer, err)
		}
		var generic map[string]any
		if err := c.Unmarshal(t.Context(), "orders", data, &generic); err != nil || generic["name"] != "茶" {
			t.Errorf("got %v, error %v", generic, err)
		}
		var anything any
		if err := c.Unmarshal(t.Context(), "orders", data, &anything); err != nil ||
			anything.(map[string]any)["id"] != int64(42) {
			t.Errorf("got %v, error %v", anything, err)
		}
	}
}

func TestTypesWithoutASchema(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	c := newCodec(t, f, avro.Of[order](`"long"`), avro.Of[line](`{"type":"record","name":"line","fields":[]}`))
	for _, v := range []any{nil, 42, struct{ ID int }{1}} {
		if _, err := c.Marshal(t.Context(), "orders", v); err == nil || !strings.Contains(err.Error(), "avro.Of") {
			t.Errorf("%T: error %v", v, err)
		}
	}
	data, err := c.Marshal(t.Context(), "orders", line{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{nil, 42, line{}, new(int), new(struct{ ID int })} {
		if err := c.Unmarshal(t.Context(), "orders", data, v); err == nil {
			t.Errorf("decoded into a %T", v)
		}
	}
	if err := c.Unmarshal(t.Context(), "orders", data, new(order)); !errors.Is(err, registry.ErrIncompatible) {
		t.Errorf("a record was decoded as a number: error %v", err)
	}
	if err := c.Check(t.Context(), "orders", 42); err == nil {
		t.Error("a number without a schema passed the check")
	}
}

func TestNewChecksItsTypes(t *testing.T) {
	t.Parallel()
	r, err := registry.New(registry.Options{URLs: []string{"http://localhost"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, types := range map[string][]avro.Type{
		"no schema":   {avro.Of[order](`{"type":"record"}`)},
		"no struct":   {avro.Infer[int]("")},
		"two schemas": {avro.Of[order](`"long"`), avro.Of[*order](`"int"`)},
	} {
		if _, err := avro.New(r, types...); err == nil || !strings.HasPrefix(err.Error(), "avro: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := avro.New(nil); err == nil {
		t.Error("a codec without a registry")
	}
}

// A registry that is away says nothing about the message. What is known needs no registry.
func TestRegistryIsAway(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	known := newCodec(t, f, avro.Infer[order]("shop"))
	data, err := known.Marshal(t.Context(), "orders", sample())
	if err != nil {
		t.Fatal(err)
	}
	if err := known.Unmarshal(t.Context(), "orders", data, new(order)); err != nil {
		t.Fatal(err)
	}
	fresh := newCodec(t, f, avro.Infer[order]("shop"))
	var down atomic.Bool
	down.Store(true)
	f.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return down.Load()
	})
	if _, err := known.Marshal(t.Context(), "orders", sample()); err != nil {
		t.Error(err)
	}
	if err := known.Unmarshal(t.Context(), "orders", data, new(order)); err != nil {
		t.Error(err)
	}
	_, encoded := fresh.Marshal(t.Context(), "orders", sample())
	decoded := fresh.Unmarshal(t.Context(), "orders", data, new(order))
	checked := fresh.Check(t.Context(), "orders", order{})
	for _, err := range []error{encoded, decoded, checked} {
		if !errors.Is(err, codec.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
	}
	down.Store(false)
	again := newCodec(t, f, avro.Infer[order]("shop"))
	if err := again.Unmarshal(t.Context(), "orders", data, new(order)); err != nil {
		t.Error(err)
	}
}

// What is registered is what the author wrote, with all that is not Avro's.
func TestSchemaIsRegisteredAsItIs(t *testing.T) {
	t.Parallel()
	const text = `{"type": "record", "name": "line", "doc": "one of an order", ` +
		`"fields": [{"name": "item", "type": "string", "pii": true}, {"name": "sum", "type": "double"}]}`
	f := newFake(t)
	if _, err := newCodec(t, f, avro.Of[line](text)).Marshal(t.Context(), "lines", line{}); err != nil {
		t.Fatal(err)
	}
	if s, ok := f.GetSchema("lines-value", 1); !ok || s.Schema.Schema != text {
		t.Errorf("registered %s", s.Schema.Schema)
	}
}

// A schema of the registry may use others, which use others.
func TestReferences(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	type customer struct {
		Home struct {
			City string `avro:"city"`
		} `avro:"home"`
	}
	f.SeedSchema("city", 1, 1, sr.Schema{
		Schema: `{"type":"record","name":"Place","namespace":"shop","fields":[{"name":"city","type":"string"}]}`})
	f.SeedSchema("address", 1, 2, sr.Schema{
		Schema:     `{"type":"record","name":"Address","namespace":"shop","fields":[{"name":"place","type":"shop.Place"}]}`,
		References: []sr.SchemaReference{{Name: "shop.Place", Subject: "city", Version: 1}}})
	f.SeedSchema("customers-value", 1, 3, sr.Schema{
		Schema: `{"type":"record","name":"customer","namespace":"shop","fields":[` +
			`{"name":"home","type":"shop.Place"},{"name":"work","type":"shop.Address"}]}`,
		References: []sr.SchemaReference{
			{Name: "shop.Place", Subject: "city", Version: 1}, {Name: "shop.Address", Subject: "address", Version: 1},
		}})
	c := newCodec(t, f, avro.Of[customer](
		`{"type":"record","name":"customer","namespace":"shop","fields":[`+
			`{"name":"home","type":{"type":"record","name":"Place","fields":[{"name":"city","type":"string"}]}}]}`))
	body := append(registry.AppendHeader(nil, 3), "\x08Rome\x08Oslo"...)
	var got customer
	if err := c.Unmarshal(t.Context(), "customers", body, &got); err != nil || got.Home.City != "Rome" {
		t.Errorf("got %+v, error %v", got, err)
	}
	f.SeedSchema("other", 1, 4, sr.Schema{Schema: `syntax = "proto3";`, Type: sr.TypeProtobuf})
	if err := c.Unmarshal(t.Context(), "customers", registry.AppendHeader(nil, 4), &got); err == nil ||
		!strings.Contains(err.Error(), "PROTOBUF") {
		t.Errorf("a schema of another type: error %v", err)
	}
}

// everything has each kind of type, and a name that leads back to itself.
const everything = `{"type":"record","name":"all","fields":[
	{"name":"b","type":"boolean"},{"name":"i","type":"int"},{"name":"l","type":"long"},
	{"name":"f","type":"float"},{"name":"d","type":"double"},
	{"name":"s","type":"string"},{"name":"y","type":"bytes"},{"name":"x","type":{"type":"fixed","name":"fix","size":4}},
	{"name":"e","type":{"type":"enum","name":"colour","symbols":["RED","BLUE"]}},
	{"name":"a","type":{"type":"array","items":"long"}},
	{"name":"n","type":{"type":"array","items":"null"}},
	{"name":"m","type":{"type":"map","values":{"type":"array","items":"null"}}},
	{"name":"u","type":["null","string",{"type":"array","items":"all"}]},
	{"name":"t","type":{"type":"long","logicalType":"timestamp-micros"}},
	{"name":"c","type":{"type":"bytes","logicalType":"decimal","precision":20,"scale":2}}]}`

type all map[string]any

func everyCodec(t testing.TB) (c *avro.Codec, header []byte) {
	t.Helper()
	f := newFake(t)
	f.SeedSchema("all-value", 1, 1, sr.Schema{Schema: everything})
	return newCodec(t, f), registry.AppendHeader(nil, 1)
}

func filled(t testing.TB) []byte {
	t.Helper()
	f := newFake(t)
	c := newCodec(t, f, avro.Of[all](everything))
	inner := all{"b": true, "i": 1, "l": 2, "f": 1.5, "d": 2.5, "s": "text", "y": []byte{1}, "x": []byte{1, 2, 3, 4},
		"e": "BLUE", "a": []int64{1, 2},
		"n": []any{nil}, "m": map[string]any{"k": []any{nil}}, "u": nil, "t": time.UnixMicro(1), "c": []byte{5}}
	outer := all{"b": true, "i": 1, "l": 2, "f": 1.5, "d": 2.5, "s": "text", "y": []byte{1}, "x": []byte{1, 2, 3, 4},
		"e": "RED", "a": []int64{},
		"n": []any{}, "m": map[string]any{}, "u": []any{map[string]any(inner)}, "t": time.UnixMicro(1), "c": []byte{5}}
	data, err := c.Marshal(t.Context(), "all", outer)
	if err != nil {
		t.Fatal(err)
	}
	return data[5:]
}

func TestHostile(t *testing.T) {
	c, header := everyCodec(t)
	good := filled(t)
	if err := codectest.Bounded(t, c, append(header, good...), new(any)); err != nil {
		t.Fatal(err)
	}
	const upToArray = "\x01\x02\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	for name, rest := range map[string]string{
		"nothing":       "",
		"truncated":     string(good[:len(good)-1]),
		"too long":      string(good) + "x",
		"long text":     "\x01\x02\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
		"long array":    upToArray + "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f",
		"array of null": upToArray + "\x00\xfe\xff\xff\xff\x7f\x00",
		"endless":       strings.Repeat("\xff", 1000),
	} {
		if err := codectest.Bounded(t, c, append(append([]byte(nil), header...), rest...), new(any)); err == nil ||
			!strings.HasPrefix(err.Error(), "avro: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	codectest.Mangled(t, c, append(header, good...), func() any { return new(any) })
}

// Schemas come from a registry that many write to: one that has no end, elements without a byte, very many levels.
func TestHostileSchemas(t *testing.T) {
	f := newFake(t)
	c := newCodec(t, f)
	huge := "\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"
	for i, h := range []struct{ schema, rest string }{
		{`{"type":"array","items":{"type":"record","name":"E","fields":[]}}`, huge},
		{`{"type":"map","values":"null"}`, huge},
		{`{"type":"array","items":{"type":"fixed","name":"F","size":0}}`, huge},
		{`{"type":"fixed","name":"F","size":2147483647}`, "x"},
		{strings.Repeat(`{"type":"array","items":`, 5000) + `"int"` + strings.Repeat("}", 5000),
			strings.Repeat("\x02", 5000)},
		{`{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"]}]}`, strings.Repeat("\x02", 100_000)},
		{`{"type":"bytes","logicalType":"decimal","precision":2147483647,"scale":2147483647}`, "\x02\x01"},
	} {
		f.SeedSchema("hostile", i+1, i+1, sr.Schema{Schema: h.schema})
		body := append(registry.AppendHeader(nil, i+1), h.rest...)
		_ = c.Unmarshal(t.Context(), "hostile", body, new(any)) // the schema is fetched and parsed once
		if err := codectest.Bounded(t, c, body, new(any)); err == nil {
			t.Errorf("a body of schema %.80s was decoded", h.schema)
		}
	}
	f.SeedSchema("endless", 1, 100, sr.Schema{Schema: `{"type":"record","name":"A","fields":[{"name":"a","type":"A"}]}`})
	// bounded by its depth, not by the body
	if err := c.Unmarshal(t.Context(), "endless", registry.AppendHeader(nil, 100), new(any)); err == nil {
		t.Error("a body without an end was decoded")
	}
}

func FuzzUnmarshal(f *testing.F) {
	c, header := everyCodec(f)
	r := newFake(f)
	typed := newCodec(f, r, avro.Infer[order]("shop"))
	body, err := typed.Marshal(f.Context(), "orders", sample())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(filled(f))
	f.Add(body[5:])
	f.Fuzz(func(t *testing.T, rest []byte) {
		_ = codectest.Bounded(t, c, append(append([]byte(nil), header...), rest...), new(any))
		var o order
		if err := codectest.Bounded(t, typed, append(append([]byte(nil), body[:5]...), rest...), &o); err == nil {
			if _, err := typed.Marshal(t.Context(), "orders", o); err != nil {
				t.Errorf("%+v was decoded and cannot be encoded: %v", o, err)
			}
		}
	})
}

// FuzzCompatible: schemas come from a registry that many write to.
func FuzzCompatible(f *testing.F) {
	f.Add(everything, everything)
	for _, c := range evolutions {
		f.Add(c.older, c.newer)
	}
	f.Fuzz(func(_ *testing.T, older, newer string) { _ = avro.Compatible(registry.Full, older, newer) })
}
