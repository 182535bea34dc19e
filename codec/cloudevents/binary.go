package cloudevents

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// prefix of a header with an attribute; the Kafka binding writes kafkaPrefix.
const (
	prefix      = "ce-"
	kafkaPrefix = "ce_"
)

// Headers returns the attributes as headers, for a message in binary mode: its body is the data, and its content type
// that of the data. Values are text as it is, as in Kafka; only over HTTP they are percent-encoded.
//
//	m, err := ferry.NewMessage(ctx, broker, "orders", order)
//	m.Headers, err = event.Headers()
//	receipt, err := broker.Publish(ctx, m)
func (e *Event) Headers() (map[string]string, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	headers := make(map[string]string, 8+len(e.Extensions))
	e.attributes(func(name, value string) { headers[prefix+name] = value })
	return headers, nil
}

// parseBinary reads the attributes out of headers. Foreign producers on Kafka have the content type there, too.
func parseBinary(contentType string, headers map[string]string, body []byte) (e Event, err error) {
	versioned := false
	for _, header := range slices.Sorted(maps.Keys(headers)) {
		value := headers[header]
		header = strings.ToLower(header)
		name, ok := strings.CutPrefix(header, prefix)
		if !ok {
			name, ok = strings.CutPrefix(header, kafkaPrefix)
		}
		switch {
		case !ok, name == "datacontenttype":
			continue
		case name == "specversion":
			versioned = true
		case !attributeName.MatchString(name):
			continue // another program's header
		}
		if err := e.set(name, value); err != nil {
			return Event{}, err
		}
	}
	if !versioned {
		return Event{}, errors.New("cloudevents: the message is no event: it has neither the header ce-specversion nor the " +
			"content type application/cloudevents+json")
	}
	if contentType == "" {
		contentType = headers["content-type"]
	}
	e.DataContentType, e.Data = contentType, body
	return e, e.Check()
}
