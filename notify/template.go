package notify

import (
	"fmt"
	"html"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Template is text with places for variables: {topic}, or {rate:.1%} with a format. {{ and }} are braces. A format is
// [.digits] and one of f (number), % (share as percentage) and d (whole number); without one a value is shown as it is.
type Template struct {
	parts []part
}

// part is text, or the place of a variable.
type part struct {
	text     string
	variable string
	digits   int
	verb     byte // 0, 'f', '%' or 'd'
}

// ParseTemplate reads a template.
func ParseTemplate(text string) (Template, error) {
	var t Template
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case (c == '{' || c == '}') && i+1 < len(text) && text[i+1] == c:
			plain.WriteByte(c)
			i++
		case c == '}':
			return Template{}, invalid("write }} for a brace", "column %d of the template has a '}' without a '{'", i+1)
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return Template{}, invalid("write {{ for a brace", "the '{' in column %d of the template has no '}'",
					i+1)
			}
			p, err := parsePlace(text[i+1:i+end], i+1)
			if err != nil {
				return Template{}, err
			}
			t.parts = append(t.parts, part{text: plain.String()}, p)
			plain.Reset()
			i += end
		default:
			plain.WriteByte(c)
		}
	}
	t.parts = append(t.parts, part{text: plain.String()})
	return t, nil
}

// parsePlace reads what stands between braces.
func parsePlace(text string, column int) (part, error) {
	name, format, formatted := strings.Cut(text, ":")
	if name == "" || strings.ContainsAny(name, "{ \t\n") {
		return part{}, invalid("write {name}, or {{ for a brace", "column %d of the template names no variable", column)
	}
	p := part{variable: name, digits: -1}
	if !formatted {
		return p, nil
	}
	wrong := invalid("use .1%, .2f or d", "the format %q in column %d of the template is unknown", format, column)
	if format == "" {
		return part{}, wrong
	}
	switch p.verb = format[len(format)-1]; p.verb {
	case 'f', '%', 'd':
	default:
		return part{}, wrong
	}
	if digits, ok := strings.CutPrefix(format[:len(format)-1], "."); ok {
		n, err := strconv.ParseUint(digits, 10, 4)
		if err != nil {
			return part{}, wrong
		}
		p.digits = int(n)
	} else if len(format) > 1 {
		return part{}, wrong
	}
	return p, nil
}

// Variables are the names that the template uses, sorted.
func (t Template) Variables() []string {
	names := map[string]bool{}
	for _, p := range t.parts {
		if p.variable != "" {
			names[p.variable] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Execute fills in variables. One that is missing, or that the format does not fit, is an error.
func (t Template) Execute(variables map[string]any) (string, error) {
	return t.execute(variables, func(s string) string { return s })
}

// ExecuteHTML fills in variables as text of an HTML page.
func (t Template) ExecuteHTML(variables map[string]any) (string, error) {
	return t.execute(variables, html.EscapeString)
}

// ExecuteMarkdown fills in variables as text that has no marks of its own: see Literal.
func (t Template) ExecuteMarkdown(variables map[string]any) (string, error) {
	return t.execute(variables, Literal)
}

func (t Template) execute(variables map[string]any, escape func(string) string) (string, error) {
	var out strings.Builder
	for _, p := range t.parts {
		if p.variable == "" {
			out.WriteString(p.text)
			continue
		}
		v, ok := variables[p.variable]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(variables)), ", ")
			return "", invalid("known are: "+known, "the template uses the unknown variable %q", p.variable)
		}
		text, err := p.show(v)
		if err != nil {
			return "", err
		}
		out.WriteString(escape(text))
	}
	return out.String(), nil
}

// show formats a value.
func (p part) show(v any) (string, error) {
	if p.verb == 0 {
		if f, ok := v.(float64); ok {
			return strconv.FormatFloat(f, 'f', -1, 64), nil
		}
		return fmt.Sprint(v), nil
	}
	f, ok := number(v)
	if !ok {
		return "", invalid("leave the format out", "variable %q is no number but %T", p.variable, v)
	}
	switch p.verb {
	case '%':
		return strconv.FormatFloat(100*f, 'f', max(p.digits, 0), 64) + "%", nil
	case 'd':
		if n := reflect.ValueOf(v); n.CanInt() || n.CanUint() { // exact, however large
			return fmt.Sprintf("%d", v), nil
		}
		return strconv.FormatFloat(f, 'f', 0, 64), nil
	}
	return strconv.FormatFloat(f, 'f', p.digits, 64), nil
}

// number is a value of any type of number as a float64.
func number(v any) (float64, bool) {
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return float64(n.Int()), true
	case n.CanUint():
		return float64(n.Uint()), true
	case n.CanFloat():
		return n.Float(), true
	}
	return 0, false
}
