package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/codec/cloudevents"
	"github.com/ferrymq/ferry/driver"
)

// eventBatchType is that of a batch of CloudEvents in JSON.
const eventBatchType = "application/cloudevents-batch+json"

// Attributes of events that are made of deliveries: the extension for ordering keys that CloudEvents has, and our own.
const (
	keyAttribute      = "partitionkey"
	leaseAttribute    = "ferrylease"
	leaseForAttribute = "ferryleasefor"
	attemptAttribute  = "ferryattempt"
)

// eventOf returns a message as a CloudEvent: the one that it is, or one made of it.
func eventOf(m *driver.Message) cloudevents.Event {
	e, err := cloudevents.Parse(m.ContentType, m.Headers, m.Body)
	if err != nil {
		e = cloudevents.Event{ID: m.ID, Source: "/topics/" + m.Topic, Type: "ferry.message", Time: m.PublishedAt,
			DataContentType: m.ContentType, Data: m.Body}
	}
	if (e.DataContentType == "" || isJSON(e.DataContentType)) && len(e.Data) > 0 && !json.Valid(e.Data) {
		e.DataContentType = "application/octet-stream" // it says that it is JSON, or nothing, which means the same
	}
	if e.Extensions == nil {
		e.Extensions = map[string]string{}
	}
	if m.Key != "" && e.Extensions[keyAttribute] == "" {
		e.Extensions[keyAttribute] = m.Key
	}
	return e
}

// wantsEvents reports whether deliveries are to be CloudEvents.
func wantsEvents(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), eventBatchType)
}

// leased returns a delivery as a CloudEvent, with what its client needs to settle it.
func leased(d delivery) cloudevents.Event {
	e := eventOf(d.message)
	e.Extensions[leaseAttribute] = d.Lease
	e.Extensions[leaseForAttribute] = time.Duration(d.LeaseFor).String()
	e.Extensions[attemptAttribute] = strconv.Itoa(d.Attempt)
	return e
}

// answerEvents answers a receive with a batch of CloudEvents.
func answerEvents(ctx context.Context, w http.ResponseWriter, ds []delivery) {
	events := make([]json.RawMessage, len(ds))
	for i, d := range ds {
		// it has what an event needs, and its data is what it says
		events[i], _ = cloudevents.Structured.Marshal(ctx, d.Topic, leased(d))
	}
	w.Header().Set("Content-Type", eventBatchType)
	_ = json.NewEncoder(w).Encode(events) // who has gone is not told
}

// answerEvent answers a receive with one CloudEvent in a mode, or with nothing.
func answerEvent(ctx context.Context, w http.ResponseWriter, ds []delivery, mode string) {
	if len(ds) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	body, contentType, attributes, _ := contentOf(ctx, leased(ds[0]), ds[0].Topic, mode) // it has what an event needs
	w.Header().Set("Content-Type", contentType)
	for name, value := range attributes {
		w.Header().Set(name, headerText(value))
	}
	_, _ = w.Write(body) // who has gone is not told
}

// Modes of events that are posted.
const (
	binaryEvents     = "binary"
	structuredEvents = "structured"
)

// content returns the body of a post, its content type, and the attributes that stand in headers: those of the message
// if it is an event in binary mode, unless the subscription wants every message to be an event.
func (p pushed) content(ctx context.Context, m *driver.Message) (body []byte, contentType string,
	attributes map[string]string, err error) {
	if p.Events != "" {
		return contentOf(ctx, eventOf(m), m.Topic, p.Events)
	}
	attributes = map[string]string{}
	for name, value := range m.Headers {
		if strings.HasPrefix(name, "ce-") {
			attributes[name] = value
		}
	}
	return m.Body, m.ContentType, attributes, nil
}

// contentOf is an event in a mode of HTTP: the body with its type, and the attributes that stand in headers.
func contentOf(ctx context.Context, e cloudevents.Event, topic, mode string) (body []byte, contentType string,
	attributes map[string]string, err error) {
	if mode == structuredEvents {
		body, err = cloudevents.Structured.Marshal(ctx, topic, e)
		return body, cloudevents.Structured.ContentType(), nil, err
	}
	attributes, err = e.Headers()
	return e.Data, e.DataContentType, attributes, err
}
