package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/codec"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type named struct {
	codec.Codec
	contentType string
}

func (n named) ContentType() string { return n.contentType }

func TestForContentType(t *testing.T) {
	t.Parallel()
	events := named{codec.JSON, "application/cloudevents+json"}
	text := named{codec.Raw, "Text/Plain; charset=utf-8"}
	cbor := named{codec.Raw, "application/cbor"}
	both := []codec.Codec{codec.JSON, codec.Raw}
	all := []codec.Codec{codec.JSON, codec.Raw, events, text, cbor}
	for _, c := range []struct {
		contentType string
		codecs      []codec.Codec
		want        codec.Codec
	}{
		{"application/json", both, codec.JSON},
		{"Application/JSON", both, codec.JSON},
		{"application/json; charset=utf-8", both, codec.JSON},
		{"application/json; charset", both, codec.JSON},
		{"application/vnd.acme.order+json", both, codec.JSON},
		{"application/cloudevents+json;x=y", both, codec.JSON},
		{"application/cloudevents+json;x=y", all, events},
		{"text/plain", all, text},
		{"application/senml+cbor", all, cbor},
		{"application/senml+cbor", both, nil},
		{"application/x+", both, nil},
		{"application/octet-stream", both, codec.Raw},
		{"application/vnd.acme.order+json", []codec.Codec{codec.Raw}, nil},
		{"application/jsonx", both, nil},
		{"text/plain", both, nil},
		{"text/plain", nil, nil},
		{"", both, nil},
		{";", both, nil},
		{"+json", []codec.Codec{codec.Raw}, nil},
	} {
		got, ok := codec.ForContentType(c.contentType, c.codecs...)
		if got != c.want || ok != (c.want != nil) {
			t.Errorf("ForContentType(%q, %d codecs) = %v, %v; want %v", c.contentType, len(c.codecs), got, ok, c.want)
		}
	}
}

func TestRawPassesThrough(t *testing.T) {
	t.Parallel()
	for _, v := range []any{[]byte{0, 0xff}, json.RawMessage{0, 0xff}, "\x00\xff"} {
		data, err := codec.Raw.Marshal(t.Context(), "t", v)
		if err != nil || string(data) != "\x00\xff" {
			t.Errorf("Marshal(%T) = %x, %v", v, data, err)
		}
	}
	var b []byte
	var m json.RawMessage
	var s string
	for _, v := range []any{&b, &m, &s} {
		if err := codec.Raw.Unmarshal(t.Context(), "t", []byte{0, 0xff}, v); err != nil {
			t.Error(err)
		}
	}
	if string(b) != "\x00\xff" || string(m) != "\x00\xff" || s != "\x00\xff" {
		t.Errorf("decoded %x, %x and %x", b, m, s)
	}
}

func TestRawSaysWhatToUseInstead(t *testing.T) {
	t.Parallel()
	_, enc := codec.Raw.Marshal(t.Context(), "t", 42)
	dec := codec.Raw.Unmarshal(t.Context(), "t", []byte("42"), new(int))
	for err, typ := range map[error]string{enc: "int", dec: "*int"} {
		if err == nil || !strings.Contains(err.Error(), " "+typ+":") || !strings.Contains(err.Error(), "codec.JSON") {
			t.Errorf("error %v does not name %s and an alternative", err, typ)
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	type order struct {
		ID    int     `json:"id"`
		Notes *string `json:"notes"`
	}
	data, err := codec.JSON.Marshal(t.Context(), "t", order{ID: 42})
	if err != nil || string(data) != `{"id":42,"notes":null}` {
		t.Fatalf("Marshal = %s, %v", data, err)
	}
	var got order
	if err := codec.JSON.Unmarshal(t.Context(), "t", data, &got); err != nil || got != (order{ID: 42}) {
		t.Errorf("Unmarshal = %+v, %v", got, err)
	}
	if err := codec.JSON.Unmarshal(t.Context(), "t", []byte(`{"id":"42"}`), &got); err == nil {
		t.Error("text was decoded as a number")
	}
	if _, err := codec.JSON.Marshal(t.Context(), "t", make(chan int)); err == nil {
		t.Error("a channel was encoded")
	}
}

// Content types come with messages that anybody wrote.
func FuzzForContentType(f *testing.F) {
	for _, ct := range []string{"application/json; charset=utf-8", "application/vnd.acme+json", "+", ";",
		"a/b;" + strings.Repeat("x=y;", 100)} {
		f.Add(ct)
	}
	f.Fuzz(func(t *testing.T, ct string) {
		if c, ok := codec.ForContentType(ct, codec.JSON, codec.Raw); ok != (c != nil) {
			t.Errorf("%q: %v, %t", ct, c, ok)
		}
	})
}
