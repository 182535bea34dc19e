package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/deadletter"
)

// Mask says what is never shown of messages, to nobody.
type Mask struct {
	// Topics are patterns as in an auth.Grant. None: every topic.
	Topics []string `json:"topics,omitempty" yaml:"topics"`
	// Headers are names of headers whose values are hidden, in any case.
	Headers []string `json:"headers,omitempty" yaml:"headers"`
	// Fields are names in JSON bodies whose values are hidden, at any depth, in any case. A body that is no JSON is hidden
	// whole.
	Fields []string `json:"fields,omitempty" yaml:"fields"`
}

// Masked reports whether masks hide parts of the messages of a topic.
func Masked(all []Mask, topic string) bool {
	return slices.ContainsFunc(all, func(m Mask) bool { return m.covers(topic) && len(m.Headers)+len(m.Fields) > 0 })
}

// masked stands where something is hidden.
const masked = "***"

// checkMasks says what is wrong with masks, and returns them with their names in lower case.
func checkMasks(all []Mask) ([]Mask, error) {
	var out []Mask
	for _, m := range all {
		if err := auth.CheckPatterns(m.Topics); err != nil {
			return nil, err
		}
		out = append(out, Mask{Topics: m.Topics, Headers: lower(m.Headers), Fields: lower(m.Fields)})
	}
	return out, nil
}

func lower(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToLower(n)
	}
	return out
}

// listMasks tells what is hidden. It is configured: nobody changes it here.
func (a *API) listMasks(context.Context, *struct{}) (api.MaskList, error) {
	out := api.MaskList{Masks: make([]api.Mask, len(a.masks))}
	for i, m := range a.masks {
		out.Masks[i] = api.Mask(m)
	}
	return out, nil
}

// maskOf returns everything that is hidden of a topic; of every topic if it is empty.
func (a *API) maskOf(topic string) Mask {
	var sum Mask
	for _, m := range a.masks {
		if topic == "" || m.covers(topic) {
			sum.Headers, sum.Fields = append(sum.Headers, m.Headers...), append(sum.Fields, m.Fields...)
		}
	}
	return sum
}

func (m Mask) covers(topic string) bool {
	return len(m.Topics) == 0 || slices.ContainsFunc(m.Topics, func(pattern string) bool {
		fits, err := path.Match(pattern, topic)
		return err == nil && fits
	})
}

// show takes out of a message what whoever asks may not see.
func (m Mask) show(v *api.Message, payload bool) {
	if h, changed := m.headers(v.Headers); changed {
		v.Headers, v.Masked = h, true
	}
	if h, changed := maskValues(v.HeadersBase64, m.Headers, nil); changed {
		v.HeadersBase64, v.Masked = h, true
	}
	if !payload {
		v.Hidden = v.Body != nil || v.BodyBase64 != nil || v.RawBase64 != nil
		v.Body, v.BodyBase64, v.RawBase64 = nil, nil, nil
		return
	}
	if len(m.Headers) > 0 && v.RawBase64 != nil {
		v.RawBase64, v.Masked = nil, true // what could not be decoded may hold the headers
	}
	m.body(v)
}

// headers returns a copy with the hidden values replaced, if there are any.
func (m Mask) headers(h map[string]string) (map[string]string, bool) {
	return maskValues(h, m.Headers, masked)
}

func maskValues[V any](h map[string]V, names []string, instead any) (map[string]V, bool) {
	var out map[string]V
	for name := range h {
		if !slices.Contains(names, strings.ToLower(name)) {
			continue
		}
		if out == nil {
			out = maps.Clone(h)
		}
		value, _ := instead.(V)
		out[name] = value
	}
	return out, out != nil
}

// body hides the fields of a JSON body, or all of another one.
func (m Mask) body(v *api.Message) {
	if len(m.Fields) == 0 || v.Body == nil && v.BodyBase64 == nil && v.RawBase64 == nil {
		return
	}
	v.BodyBase64, v.RawBase64, v.Masked = nil, nil, true
	text := masked
	if v.Body != nil {
		text = m.text(*v.Body)
		v.Masked = text != *v.Body
	}
	v.Body = &text
}

// text returns a JSON text with the values of the fields replaced; as it was if it has none of them.
func (m Mask) text(body string) string {
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		return masked
	}
	if !m.walk(v) {
		return body
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return masked
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// walk replaces values in place, and reports whether it did.
func (m Mask) walk(v any) bool {
	changed := false
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if slices.Contains(m.Fields, strings.ToLower(name)) {
				v[name], changed = masked, true
			} else {
				changed = m.walk(value) || changed
			}
		}
	case []any:
		for _, e := range v {
			changed = m.walk(e) || changed
		}
	}
	return changed
}

// asks returns a problem if a filter looks at what whoever asks may not see: its answers would tell it bit by bit.
func (m Mask) asks(f *deadletter.Filter, payload bool) error {
	body := f.Reads("body") || f.Reads("json")
	switch {
	case f == nil:
		return nil
	case body && !payload:
		return unseen("a filter on body or json takes the scope payload", askForIt)
	case body && len(m.Fields) > 0, f.Reads("headers") && len(m.Headers) > 0:
		return unseen("the server masks parts of what the filter looks at",
			"filter by other fields: key, reason, error, size, published_at")
	}
	return nil
}

// patches returns a problem if a JSON patch would touch a body that whoever asks may not see whole: its tests tell what
// is there, and its copies put it where nothing is masked.
func (m Mask) patches(payload bool) error {
	switch {
	case !payload:
		return unseen("a patch of the body takes the scope payload", askForIt)
	case len(m.Fields) > 0:
		return unseen("the server masks parts of what the patch would change",
			"give a whole body, or patch it with ferry dlq replay, on the broker itself")
	}
	return nil
}

// leaves returns a problem if a message would come to a topic that hides less of it.
func (m Mask) leaves(to Mask) error {
	if subset(m.Headers, to.Headers) && subset(m.Fields, to.Fields) {
		return nil
	}
	return unseen("the server masks parts of these messages, and not in the topic that they would come to",
		"mask them there, too, or replay them with ferry dlq replay, on the broker itself")
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(all, name) })
}

// unseen is the problem of who asks for what they may not see.
func unseen(detail, hint string) *api.Problem {
	p := forbidden(auth.Payload, "")
	p.Detail, p.Hint = detail, hint
	return p
}
