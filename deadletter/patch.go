package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// Patch is a JSON patch (RFC 6902).
type Patch []step

// step is one operation of a patch.
type step struct {
	Op    string          `json:"op"`
	Path  *string         `json:"path"`
	From  *string         `json:"from"`
	Value json.RawMessage `json:"value"`

	path, from pointer
	value      any
}

// maxPatchSteps bounds a patch, and with it how much a document can grow by copying: see maxPatched.
const maxPatchSteps = 1000

// ParsePatch reads a JSON patch, and says which of its operations is wrong.
func ParsePatch(text []byte) (Patch, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	var p Patch
	if err := d.Decode(&p); err != nil {
		return nil, badPatch(fmt.Sprintf("not a list of operations: %v", err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, badPatch("something follows the list of operations")
	}
	if len(p) > maxPatchSteps {
		return nil, badPatch(fmt.Sprintf("%d operations are too many", len(p)))
	}
	for i := range p {
		if err := p[i].parse(); err != nil {
			return nil, badPatch(fmt.Sprintf("operation %d: %v", i+1, err))
		}
	}
	return p, nil
}

func badPatch(text string) error {
	return driver.NewError(driver.ErrInvalid, "JSON patch: "+text,
		`write it as [{"op":"replace","path":"/user/id","value":7}], see RFC 6902`, nil)
}

func (s *step) parse() (err error) {
	needsFrom, needsValue := s.Op == "move" || s.Op == "copy", s.Op == "add" || s.Op == "replace" || s.Op == "test"
	switch {
	case !needsFrom && !needsValue && s.Op != "remove":
		return fmt.Errorf("%q is none of add, remove, replace, move, copy and test", s.Op)
	case s.Path == nil:
		return errors.New("it has no path")
	case needsFrom && s.From == nil:
		return fmt.Errorf("%s has no from", s.Op)
	case needsValue && s.Value == nil:
		return fmt.Errorf("%s has no value", s.Op)
	}
	if s.path, err = parsePointer(*s.Path); err != nil {
		return err
	}
	if s.From != nil {
		if s.from, err = parsePointer(*s.From); err != nil {
			return err
		}
		if s.Op == "move" && len(s.path) > len(s.from) && slices.Equal(s.path[:len(s.from)], s.from) {
			return errors.New("a value cannot be moved into itself")
		}
	}
	if s.Value != nil {
		s.value, err = decodeExact(s.Value)
	}
	return err
}

// Apply returns the document after all operations, or an error and nothing.
func (p Patch) Apply(document []byte) ([]byte, error) {
	root, err := decodeExact(document)
	if err != nil {
		return nil, patchFails("the body is not JSON", err)
	}
	for i, s := range p {
		if root, err = s.apply(root, maxPatched(len(document))); err != nil {
			return nil, patchFails(fmt.Sprintf("operation %d (%s %s)", i+1, s.Op, *s.Path), err)
		}
	}
	return encodeExact(root)
}

// maxPatched is how large a document of so many bytes may become: copies of copies double it.
func maxPatched(size int) int { return 16<<20 + 2*size }

func patchFails(text string, cause error) error {
	return driver.NewError(driver.ErrInvalid, "the JSON patch does not apply: "+text,
		"look at the body, and mend the patch", cause)
}

func (s step) apply(root any, limit int) (any, error) {
	switch s.Op {
	case "add":
		return s.path.add(root, clone(s.value))
	case "remove":
		root, _, err := s.path.remove(root)
		return root, err
	case "replace":
		return s.path.replace(root, clone(s.value))
	case "move":
		root, value, err := s.from.remove(root)
		if err != nil {
			return nil, err
		}
		return s.path.add(root, value)
	case "copy":
		value, err := s.from.get(root)
		if err != nil {
			return nil, err
		}
		if weight(root)+weight(value) > limit {
			return nil, errors.New("the document becomes too large")
		}
		return s.path.add(root, clone(value))
	}
	value, err := s.path.get(root)
	if err == nil && !equal(value, s.value) {
		err = errors.New("the value is another one")
	}
	return root, err
}

// decodeExact reads JSON with its numbers as they are written.
func decodeExact(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}

func encodeExact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, e := range v {
			c[k] = clone(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = clone(e)
		}
		return c
	}
	return v
}

// weight is about how many bytes a value is.
func weight(v any) int {
	n := 8
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			n += len(k) + weight(e)
		}
	case []any:
		for _, e := range v {
			n += weight(e)
		}
	case string:
		n += len(v)
	case json.Number:
		n += len(v)
	}
	return n
}

// equal compares as RFC 6902 does: numbers by their value, objects without order.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case json.Number:
		b, ok := b.(json.Number)
		if !ok || a == b {
			return ok
		}
		x, errX := strconv.ParseFloat(string(a), 64)
		y, errY := strconv.ParseFloat(string(b), 64)
		return errX == nil && errY == nil && x == y && !(isInteger(a) && isInteger(b))
	}
	return a == b
}

func isInteger(n json.Number) bool { return !strings.ContainsAny(string(n), ".eE") }
