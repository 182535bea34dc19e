package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// What is written by hand is what encoding/json writes.
func FuzzAppendDelivery(f *testing.F) {
	f.Add("plain", []byte("text"), "text/plain", int64(30e9))
	f.Add("日本\u2028\u2029\"\\\x00\x1f\t\n\r\b\f\x7f<&>", []byte(` {"a" : [1, "x\ny"]}`), "application/json", int64(1))
	f.Add("\xff\xfe", []byte{0, 255}, "", int64(-5))
	f.Add("", []byte(""), "application/problem+json; charset=utf-8", int64(0))
	f.Add("k", []byte("{"), "application/json", int64(1))
	f.Fuzz(func(t *testing.T, text string, body []byte, contentType string, nanos int64) {
		d := &driver.Delivery{Message: &driver.Message{ID: text, Topic: text, Key: text, Body: body, ContentType: contentType,
			Headers: map[string]string{"b": text, text: "x", "a": ""}, PublishedAt: time.Unix(0, nanos)}, Group: "g",
			Attempt: int(nanos), Deliveries: 2}
		all := []delivery{shown(d, text, time.Duration(nanos)), {}}
		for i := range all {
			var want bytes.Buffer
			e := json.NewEncoder(&want)
			e.SetEscapeHTML(false)
			if err := e.Encode(&all[i]); err != nil {
				t.Fatal(err)
			}
			got := string(appendDelivery([]byte("before "), &all[i])) + "\n"
			if got != "before "+want.String() || strings.Count(got, "\n") != 1 {
				t.Errorf("got  %s\nwant %s", got, want.String())
			}
		}
	})
}

// An answer to a receive is what encoding/json writes, with and without anything in it.
func TestAppendReceived(t *testing.T) {
	t.Parallel()
	d := delivery{Lease: "a", LeaseFor: jsontime.Duration(time.Second), ID: "1"}
	for _, r := range []received{
		{Messages: []delivery{}},
		{Messages: []delivery{d}},
		{Messages: []delivery{d, d}, Settled: []outcome{{OK: true}, {Error: &problem{Title: "t", Code: "c"}}}},
		{Messages: []delivery{}, Settled: []outcome{{OK: true}}, Error: &problem{Title: "t"}},
	} {
		want, err := json.Marshal(r)
		if got := string(appendReceived(nil, r)); err != nil || got != string(want)+"\n" {
			t.Errorf("got  %s\nwant %s, %v", got, want, err)
		}
	}
}

// An answer to a publish of many is what encoding/json writes.
func TestAppendReceipts(t *testing.T) {
	t.Parallel()
	one := receipt{ID: "a <b> \"c\""}
	for _, all := range [][]receipt{
		{}, {one}, {one, {ID: "b", Duplicate: true}, {ID: "c", IDWindow: jsontime.Duration(time.Minute)}},
		{{Error: &problem{Title: "t", Detail: "a < b", Code: "c"}}, one, {ID: "d", Error: &problem{}}, {}},
	} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(receipts{all}); err != nil {
			t.Fatal(err)
		}
		if got := string(appendReceipts(nil, all)); got != want.String() {
			t.Errorf("got  %s\nwant %s", got, want.String())
		}
	}
}
