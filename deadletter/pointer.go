package deadletter

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pointer is a JSON pointer (RFC 6901): the names and indexes on the way to a value.
type pointer []string

// maxPointer bounds how deep a pointer goes.
const maxPointer = 1000

func parsePointer(s string) (pointer, error) {
	if s == "" {
		return nil, nil
	}
	if s[0] != '/' {
		return nil, fmt.Errorf("path %q does not begin with /", s)
	}
	parts := strings.Split(s[1:], "/")
	if len(parts) > maxPointer {
		return nil, errors.New("the path is too deep")
	}
	for i, p := range parts {
		for j := 0; j < len(p); j++ {
			if p[j] == '~' && (j+1 == len(p) || p[j+1] != '0' && p[j+1] != '1') {
				return nil, fmt.Errorf("path %q has a ~ that is neither ~0 nor ~1", s)
			}
		}
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

func (p pointer) String() string {
	var b strings.Builder
	for _, part := range p {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// get returns the value at p.
func (p pointer) get(root any) (any, error) {
	at := root
	for i, name := range p {
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[name]
			if !ok {
				return nil, missing(p[:i+1])
			}
			at = next
		case []any:
			n, err := index(name, len(v)-1)
			if err != nil {
				return nil, err
			}
			at = v[n]
		default:
			return nil, missing(p[:i+1])
		}
	}
	return at, nil
}

func missing(p pointer) error { return fmt.Errorf("there is no %s", p) }

// index reads an index of a list, from 0 to last.
func index(s string, last int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || s != strconv.Itoa(n) {
		return 0, fmt.Errorf("%q is no index of a list", s)
	}
	if n > last {
		return 0, fmt.Errorf("index %d is behind the end of the list", n)
	}
	return n, nil
}

// change replaces the parent of p by what edit makes of it, and returns the root.
func (p pointer) change(root any, edit func(parent any, name string) (any, error)) (any, error) {
	up, name := p[:len(p)-1], p[len(p)-1]
	parent, err := up.get(root)
	if err != nil {
		return nil, err
	}
	changed, err := edit(parent, name)
	if err != nil {
		return nil, err
	}
	if len(up) == 0 {
		return changed, nil
	}
	return up.replace(root, changed)
}

// add puts a value at p: into a list before what is there, into an object instead of it.
func (p pointer) add(root, value any) (any, error) {
	if len(p) == 0 {
		return value, nil
	}
	return p.change(root, func(parent any, name string) (any, error) {
		switch v := parent.(type) {
		case map[string]any:
			v[name] = value
			return v, nil
		case []any:
			if name == "-" {
				return append(v, value), nil
			}
			n, err := index(name, len(v))
			if err != nil {
				return nil, err
			}
			return slices.Insert(v, n, value), nil
		}
		return nil, missing(p)
	})
}

// replace puts a value in place of the one at p.
func (p pointer) replace(root, value any) (any, error) {
	if len(p) == 0 {
		return value, nil
	}
	parent, err := p[:len(p)-1].get(root)
	if err != nil {
		return nil, err
	}
	name := p[len(p)-1]
	switch v := parent.(type) {
	case map[string]any:
		if _, ok := v[name]; !ok {
			return nil, missing(p)
		}
		v[name] = value
		return root, nil
	case []any:
		n, err := index(name, len(v)-1)
		if err != nil {
			return nil, err
		}
		v[n] = value
		return root, nil
	}
	return nil, missing(p)
}

// remove takes the value at p away, and returns the root and the value.
func (p pointer) remove(root any) (_, removed any, err error) {
	if removed, err = p.get(root); err != nil {
		return nil, nil, err
	}
	if len(p) == 0 {
		return nil, removed, nil
	}
	root, err = p.change(root, func(parent any, name string) (any, error) {
		switch v := parent.(type) {
		case map[string]any:
			delete(v, name)
			return v, nil
		case []any:
			n, err := index(name, len(v)-1)
			if err != nil {
				return nil, err
			}
			return slices.Delete(v, n, n+1), nil
		}
		return nil, missing(p)
	})
	return root, removed, err
}
