package cloudevents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ferrymq/ferry/codec"
)

// Structured encodes an Event as one JSON object. It decodes such an object into an Event, and its data, if that is
// JSON, into a value of any other type: a handler of orders reads both modes.
var Structured codec.Codec = structured{}

type structured struct{}

// ContentType returns "application/cloudevents+json".
func (structured) ContentType() string { return "application/cloudevents+json" }

// Marshal encodes an Event or *Event.
func (structured) Marshal(_ context.Context, _ string, v any) ([]byte, error) {
	switch e := v.(type) {
	case Event:
		return e.structured()
	case *Event:
		if e != nil {
			return e.structured()
		}
	}
	return nil, fmt.Errorf("cloudevents: a %T is no event: publish a cloudevents.Event", v)
}

// Unmarshal decodes into a *Event, or the data into any other pointer.
func (structured) Unmarshal(_ context.Context, _ string, data []byte, v any) error {
	e, err := parseStructured(data)
	if err != nil {
		return err
	}
	if into, ok := v.(*Event); ok && into != nil {
		*into = e
		return nil
	}
	if !isJSON(e.DataContentType) {
		return fmt.Errorf("cloudevents: data of type %s does not decode into a %T: decode into a cloudevents.Event, and "+
			"its Data as you like", e.DataContentType, v)
	}
	if len(e.Data) == 0 {
		return fmt.Errorf("cloudevents: the event has no data for a %T: decode into a cloudevents.Event", v)
	}
	return json.Unmarshal(e.Data, v)
}

func (e *Event) structured() ([]byte, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	object := make(map[string]any, 9+len(e.Extensions))
	e.attributes(func(name, value string) { object[name] = value })
	if e.DataContentType != "" {
		object["datacontenttype"] = e.DataContentType
	}
	switch {
	case e.Data == nil:
	case isJSON(e.DataContentType):
		object["data"] = json.RawMessage(e.Data)
	case strings.HasPrefix(e.DataContentType, "text/") && utf8.Valid(e.Data):
		object["data"] = string(e.Data)
	default:
		object["data_base64"] = e.Data
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("cloudevents: the data is not JSON: set DataContentType: %w", err)
	}
	return data, nil
}

func parseStructured(body []byte) (e Event, err error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		return Event{}, fmt.Errorf("cloudevents: the body is no JSON object: correct the producer: %w", err)
	}
	if _, ok := object["specversion"]; !ok {
		return Event{}, errors.New("cloudevents: the object has no specversion: correct the producer")
	}
	for name, raw := range object {
		if name == "data" || name == "data_base64" || string(raw) == "null" {
			continue
		}
		value, err := attributeText(name, raw)
		if err != nil {
			return Event{}, err
		}
		if err := e.set(name, value); err != nil {
			return Event{}, err
		}
	}
	if e.Data, err = dataOf(object, e.DataContentType); err != nil {
		return Event{}, err
	}
	return e, e.Check()
}

// attributeText returns an attribute as text. Extensions may be numbers and truth values.
func attributeText(name string, raw json.RawMessage) (text string, err error) {
	switch {
	case raw[0] == '"':
		err = json.Unmarshal(raw, &text)
	case raw[0] == '{' || raw[0] == '[' || reserved[name]:
		err = fmt.Errorf("cloudevents: attribute %.50q is no text: correct the producer", name)
	default:
		text = string(raw)
	}
	return text, err
}

func dataOf(object map[string]json.RawMessage, contentType string) (data []byte, err error) {
	plain, encoded := object["data"], object["data_base64"]
	switch {
	case plain != nil && encoded != nil:
		return nil, errors.New("cloudevents: the object has both data and data_base64: correct the producer")
	case encoded != nil:
		if err = json.Unmarshal(encoded, &data); err != nil {
			err = fmt.Errorf("cloudevents: data_base64 is not in base64: correct the producer: %w", err)
		}
		return data, err
	case plain != nil && !isJSON(contentType) && plain[0] == '"':
		var text string
		err = json.Unmarshal(plain, &text)
		return []byte(text), err
	}
	return plain, nil
}
