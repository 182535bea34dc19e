package cloudevents_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/codec/cloudevents"
	"github.com/ferrymq/ferry/codec/codectest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func event() cloudevents.Event {
	return cloudevents.Event{
		ID: "A234-1234", Source: "/shop", Type: "com.example.order", Subject: "订单 42",
		Time:            time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC),
		DataContentType: "application/json", DataSchema: "https://example.com/order",
		Extensions: map[string]string{"traceparent": "00-1"},
		Data:       []byte(`{"id":42}`),
	}
}

func TestBinary(t *testing.T) {
	t.Parallel()
	e := event()
	headers, err := e.Headers()
	want := map[string]string{
		"ce-specversion": "1.0", "ce-id": "A234-1234", "ce-source": "/shop", "ce-type": "com.example.order",
		"ce-subject": "订单 42",
		"ce-time":    "2026-01-02T03:04:05.006Z", "ce-dataschema": "https://example.com/order", "ce-traceparent": "00-1",
	}
	if err != nil || !maps.Equal(headers, want) {
		t.Fatalf("headers %v, error %v", headers, err)
	}
	headers["other"] = "not an attribute"
	got, err := cloudevents.Parse("application/json", headers, e.Data)
	if err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("got %+v, error %v", got, err)
	}
}

// A foreign producer on Kafka has other prefixes, and the content type in a header.
func TestBinaryOfKafka(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/s", "ce_type": "t",
		"content-type": "text/plain"}
	got, err := cloudevents.Parse("", headers, []byte("hello"))
	want := cloudevents.Event{ID: "1", Source: "/s", Type: "t", DataContentType: "text/plain", Data: []byte("hello")}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestStructured(t *testing.T) {
	t.Parallel()
	text, blob, none := event(), event(), event()
	text.DataContentType, text.Data = "text/plain", []byte("hello")
	blob.DataContentType, blob.Data = "image/png", []byte{0x89, 'P', 'N', 'G'}
	none.DataContentType, none.Data = "", nil
	for name, c := range map[string]struct {
		e    cloudevents.Event
		want string
	}{
		"json":    {event(), `"data":{"id":42}`},
		"text":    {text, `"data":"hello"`},
		"binary":  {blob, `"data_base64":"iVBORw=="`},
		"no data": {none, `"subject":"订单 42"`},
	} {
		data, err := cloudevents.Structured.Marshal(t.Context(), "orders", &c.e)
		if err != nil || !strings.Contains(string(data), c.want) {
			t.Errorf("%s: %s, error %v", name, data, err)
		}
		var got cloudevents.Event
		if err := cloudevents.Structured.Unmarshal(t.Context(), "orders", data, &got); err != nil ||
			!reflect.DeepEqual(got, c.e) {
			t.Errorf("%s: got %+v, error %v", name, got, err)
		}
		parsed, err := cloudevents.Parse("application/cloudevents+json; charset=utf-8", nil, data)
		if err != nil || !reflect.DeepEqual(parsed, c.e) {
			t.Errorf("%s: got %+v, error %v", name, parsed, err)
		}
	}
}

// A handler of orders gets those of either mode: the body of binary ones, and the data of structured ones.
func TestStructuredDataIntoAnyType(t *testing.T) {
	t.Parallel()
	data, err := cloudevents.Structured.Marshal(t.Context(), "orders", event())
	if err != nil {
		t.Fatal(err)
	}
	var order struct{ ID int }
	if err := cloudevents.Structured.Unmarshal(t.Context(), "orders", data, &order); err != nil || order.ID != 42 {
		t.Errorf("got %+v, error %v", order, err)
	}
	for _, body := range []string{
		`{"specversion":"1.0","id":"1","source":"s","type":"t"}`,
		`{"specversion":"1.0","id":"1","source":"s","type":"t","datacontenttype":"text/plain","data":"hello"}`,
	} {
		if err := cloudevents.Structured.Unmarshal(t.Context(), "orders", []byte(body), &order); err == nil ||
			!strings.Contains(err.Error(), "cloudevents.Event") {
			t.Errorf("%s: error %v", body, err)
		}
	}
}

// Other producers write extensions as numbers and truth values, and null for what is not there.
func TestForeignStructured(t *testing.T) {
	t.Parallel()
	body := `{"specversion":"1.0","id":"1","source":"s","type":"t","retries":3,"vip":true,"subject":null,"data":[1,2]}`
	got, err := cloudevents.Parse("application/cloudevents+json", nil, []byte(body))
	want := cloudevents.Event{ID: "1", Source: "s", Type: "t",
		Extensions: map[string]string{"retries": "3", "vip": "true"}, Data: []byte("[1,2]")}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func hostile() map[string]string {
	with := func(more string) string { return `{"specversion":"1.0","id":"1","source":"s","type":"t"` + more + `}` }
	return map[string]string{
		"nothing":        "",
		"no object":      "[]",
		"no version":     `{"id":"1","source":"s","type":"t"}`,
		"other version":  `{"specversion":"0.3","id":"1","source":"s","type":"t"}`,
		"no id":          `{"specversion":"1.0","source":"s","type":"t"}`,
		"number as id":   `{"specversion":"1.0","id":1,"source":"s","type":"t"}`,
		"time":           with(`,"time":"yesterday"`),
		"both":           with(`,"data":1,"data_base64":"AA=="`),
		"base64":         with(`,"data_base64":"?"`),
		"base64 no text": with(`,"data_base64":{}`),
		"extension":      with(`,"Not-A-Name":"x"`),
		"nested":         with(`,"x":{"y":1}`),
		"deep":           with(`,"data":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000)),
		"truncated":      with("")[:20],
	}
}

func TestHostile(t *testing.T) {
	for name, body := range hostile() {
		if err := codectest.Bounded(t, cloudevents.Structured, []byte(body), new(cloudevents.Event)); err == nil ||
			!strings.HasPrefix(err.Error(), "cloudevents: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	data, err := cloudevents.Structured.Marshal(t.Context(), "orders", event())
	if err != nil {
		t.Fatal(err)
	}
	codectest.Mangled(t, cloudevents.Structured, data, func() any { return new(cloudevents.Event) })
	for name, headers := range map[string]map[string]string{
		"none":          nil,
		"no version":    {"ce-id": "1", "ce-source": "s", "ce-type": "t"},
		"other version": {"ce-specversion": "2", "ce-id": "1", "ce-source": "s", "ce-type": "t"},
		"no source":     {"ce-specversion": "1.0", "ce-id": "1", "ce-type": "t"},
		"reserved":      {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", "ce-data": "x"},
	} {
		if _, err := cloudevents.Parse("application/json", headers, nil); err == nil {
			t.Errorf("headers with %s passed", name)
		}
	}
}

func TestWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	broken := event()
	broken.Data = []byte("{")
	unnamed := event()
	unnamed.Extensions = map[string]string{"type": "x"}
	for name, v := range map[string]any{"text": "x", "nil": (*cloudevents.Event)(nil), "empty": cloudevents.Event{},
		"data": broken, "extension": unnamed} {
		if _, err := cloudevents.Structured.Marshal(t.Context(), "orders", v); err == nil {
			t.Errorf("%s was encoded", name)
		}
	}
	if _, err := unnamed.Headers(); err == nil {
		t.Error("an extension with the name of an attribute became a header")
	}
}

func FuzzParse(f *testing.F) {
	data, err := cloudevents.Structured.Marshal(f.Context(), "orders", event())
	if err != nil {
		f.Fatal(err)
	}
	f.Add("application/cloudevents+json", "ce-time", "", data)
	f.Add("application/json", "ce-time", "2026-01-02T03:04:05Z", []byte("{}"))
	for _, body := range hostile() {
		f.Add("application/cloudevents+json", "ce-x", "y", []byte(body))
	}
	f.Fuzz(func(t *testing.T, contentType, header, value string, body []byte) {
		headers := map[string]string{"ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t", header: value}
		e, err := cloudevents.Parse(contentType, headers, body)
		if err != nil {
			return
		}
		if _, err := e.Headers(); err != nil {
			t.Errorf("an event that was read cannot be written: %v", err)
		}
		if _, err := cloudevents.Structured.Marshal(t.Context(), "t", e); err != nil && json.Valid(e.Data) {
			t.Errorf("an event that was read cannot be written: %v", err)
		}
	})
}
