package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// valueError is a value that cannot be read, and where it is. The YAML package tells no line for types with a reader of
// their own.
type valueError struct {
	line int
	text string
	hint string // empty: the one of every error
}

func (e *valueError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.text) }

func wrongValue(node ast.Node, text string) error {
	return &valueError{line: lineOf(node), text: text}
}

// lineOf is where a value begins. The token of a mapping is the colon of its first key.
func lineOf(node ast.Node) int { return node.GetToken().Position.Line }

// decode reads a part of the file strictly. What the YAML package knows no line of is told by the line of the part.
func decode(node ast.Node, into any, text string) error {
	err := yaml.NodeToValue(node, into, yaml.Strict())
	var known yaml.Error
	var value *valueError
	if err != nil && !errors.As(err, &known) && !errors.As(err, &value) {
		return wrongValue(node, text)
	}
	return err
}

// textOf returns a scalar as it is written.
func textOf(node ast.Node) string {
	if s, ok := node.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(node.String())
}

// Duration is a time like 30s or 1h30m.
type Duration time.Duration

// UnmarshalYAML reads a duration, which is not negative.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	parsed, err := time.ParseDuration(textOf(node))
	if err != nil || parsed < 0 {
		return wrongValue(node, "a duration looks like 30s or 1h30m, and is not negative")
	}
	*d = Duration(parsed)
	return nil
}

// Size is a number of bytes: 8MiB, 512KiB, 1048576.
type Size int64

// UnmarshalYAML reads a number with or without a unit.
func (s *Size) UnmarshalYAML(node ast.Node) error {
	text, shift := textOf(node), 0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			text, shift = strings.TrimSpace(number), 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 1<<40>>shift {
		return wrongValue(node, "a size is a number of bytes, KiB, MiB or GiB: 8MiB")
	}
	*s = Size(n << shift)
	return nil
}
