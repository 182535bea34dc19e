// Package cloudevents reads and writes CloudEvents 1.0 in both modes: binary, where the attributes are headers and the
// body is the data, and structured, where one JSON object has all of it.
package cloudevents

import (
	"errors"
	"fmt"
	"mime"
	"regexp"
	"strings"
	"time"
)

// Version is the version of the specification.
const Version = "1.0"

// Event is one CloudEvent. ID, Source and Type are required.
type Event struct {
	ID              string
	Source          string // a URI reference
	Type            string
	Subject         string
	Time            time.Time // zero: none
	DataContentType string    // of Data; empty means JSON
	DataSchema      string    // a URI
	// Extensions are further attributes. Their names have lower-case letters and digits. Numbers and truth values are kept
	// as text.
	Extensions map[string]string
	Data       []byte
}

var attributeName = regexp.MustCompile(`^[a-z0-9]+$`)

// Check returns what is wrong with an event.
func (e *Event) Check() error {
	var errs []error
	for _, a := range []struct{ name, value string }{{"id", e.ID}, {"source", e.Source}, {"type", e.Type}} {
		if a.value == "" {
			errs = append(errs, fmt.Errorf("cloudevents: the event has no %s: give it one", a.name))
		}
	}
	for name := range e.Extensions {
		if reserved[name] || !attributeName.MatchString(name) {
			errs = append(errs, fmt.Errorf(
				"cloudevents: an extension is called %q: use lower-case letters and digits, and no name of the specification",
				name))
		}
	}
	return errors.Join(errs...)
}

// reserved are the names that an extension cannot have.
var reserved = map[string]bool{
	"specversion": true, "id": true, "source": true, "type": true, "subject": true, "time": true,
	"datacontenttype": true, "dataschema": true, "data": true, "data_base64": true,
}

// set sets an attribute by its name. An unknown one is an extension.
func (e *Event) set(name, value string) (err error) {
	switch name {
	case "specversion":
		if value != Version {
			err = fmt.Errorf("cloudevents: version %q of the specification: only %s is read", value, Version)
		}
	case "id":
		e.ID = value
	case "source":
		e.Source = value
	case "type":
		e.Type = value
	case "subject":
		e.Subject = value
	case "time":
		if e.Time, err = time.Parse(time.RFC3339, value); err != nil {
			err = fmt.Errorf("cloudevents: the time is not in RFC 3339: correct the producer: %w", err)
		}
	case "datacontenttype":
		e.DataContentType = value
	case "dataschema":
		e.DataSchema = value
	default:
		if e.Extensions == nil {
			e.Extensions = make(map[string]string)
		}
		e.Extensions[name] = value
	}
	return err
}

// attributes calls f for each attribute that the event has, except the content type of its data.
func (e *Event) attributes(f func(name, value string)) {
	f("specversion", Version)
	for _, a := range []struct{ name, value string }{
		{"id", e.ID}, {"source", e.Source}, {"type", e.Type}, {"subject", e.Subject}, {"dataschema", e.DataSchema},
	} {
		if a.value != "" {
			f(a.name, a.value)
		}
	}
	if !e.Time.IsZero() {
		f("time", e.Time.Format(time.RFC3339Nano))
	}
	for name, value := range e.Extensions {
		f(name, value)
	}
}

// Parse reads the event out of a message of either mode: its content type, headers and body.
func Parse(contentType string, headers map[string]string, body []byte) (Event, error) {
	if media, _, err := mime.ParseMediaType(contentType); err == nil && media == Structured.ContentType() {
		return parseStructured(body)
	}
	return parseBinary(contentType, headers, body)
}

// isJSON reports whether data of a content type stands in a JSON object as it is.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"))
}
