package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/ferrymq/ferry/driver"
)

// Filter is a condition on letters, in the language of expr-lang: reason == "timeout" and attempts > 3. It is safe for
// concurrent use, and its evaluation is bounded: no loop in a loop, no text or list that it could grow.
type Filter struct {
	text                 string
	program              *vm.Program
	needsBody, needsJSON bool
}

// fields are what a filter may name. Of a parse error only id, topic, ref, size, problem and body (what was found) are set.
type fields struct {
	ID          string            `expr:"id"`
	Topic       string            `expr:"topic"`
	Group       string            `expr:"group"`
	Key         string            `expr:"key"`
	Ref         string            `expr:"ref"`
	Reason      string            `expr:"reason"`
	Error       string            `expr:"error"`
	Fingerprint string            `expr:"fingerprint"`
	Stack       string            `expr:"stack"`
	Action      string            `expr:"action"`
	Recoverable bool              `expr:"recoverable"`
	Attempts    int               `expr:"attempts"`
	Deliveries  int               `expr:"deliveries"`
	Rounds      int               `expr:"rounds"`
	Instance    string            `expr:"instance"`
	Priority    string            `expr:"priority"`
	ContentType string            `expr:"content_type"`
	Headers     map[string]string `expr:"headers"`
	Body        string            `expr:"body"`
	JSON        any               `expr:"json"`
	Size        int               `expr:"size"`
	Problem     string            `expr:"problem"`
	PublishedAt time.Time         `expr:"published_at"`
	DiedAt      time.Time         `expr:"died_at"`
	Age         time.Duration     `expr:"age"` // since it died, by the clock of this machine
}

// FilterFields are the names that a filter may use, in words for people.
const FilterFields = "id, topic, group, key, ref, reason, error, fingerprint, stack, action, recoverable, attempts, deliveries, rounds, instance, " +
	"priority, content_type, headers, body (text), json (the body as JSON), size, problem, published_at, died_at, age"

const (
	maxFilterText   = 4 << 10
	maxFilterNodes  = 100
	maxFilterMemory = 100_000 // elements of lists that one evaluation may make
)

// filterFunctions are the functions of expr-lang that can neither loop without bound nor make anything large.
var filterFunctions = []string{"len", "lower", "upper", "trim", "trimPrefix", "trimSuffix", "hasPrefix", "hasSuffix", "indexOf", "int", "float", "string",
	"type", "abs", "first", "last", "get", "keys", "values", "duration", "date", "now", "any", "all", "none", "one", "count"}

// ParseFilter reads a condition. The error of a broken one tells the column.
func ParseFilter(text string) (*Filter, error) {
	if len(text) > maxFilterText {
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("filter of %d bytes is too long", len(text)), fmt.Sprintf("use at most %d bytes", maxFilterText), nil)
	}
	options := []expr.Option{expr.Env(fields{}), expr.AsBool(), expr.MaxNodes(maxFilterNodes), expr.DisableAllBuiltins()}
	for _, name := range filterFunctions {
		options = append(options, expr.EnableBuiltin(name))
	}
	plain, err := expr.Compile(text, append(options, expr.Optimize(false))...) // the optimizer hides what was written
	if err != nil {
		return nil, filterError(text, err)
	}
	c := bounds{}
	c.walk(plain.Node(), 0)
	if c.broken != nil {
		return nil, filterError(text, c.broken.Bind(file.NewSource(text)))
	}
	program, err := expr.Compile(text, options...)
	if err != nil {
		return nil, filterError(text, err)
	}
	return &Filter{text: text, program: program, needsBody: c.body || c.json, needsJSON: c.json}, nil
}

// filterError says where a filter is broken.
func filterError(text string, err error) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("filter %.200q is broken: %v", text, err), "it may use "+FilterFields, nil)
	}
	place := fmt.Sprintf("column %d", at.Column+1)
	if at.Line > 1 {
		place = fmt.Sprintf("line %d, column %d", at.Line, at.Column+1)
	}
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("filter %.200q is broken at %s: %s", text, place, at.Message), "it may use "+FilterFields, nil)
}

// bounds finds what could make an evaluation long or large.
type bounds struct {
	body, json bool // is asked for
	broken     *file.Error
}

func (b *bounds) refuse(n ast.Node, text string) {
	if b.broken == nil {
		b.broken = &file.Error{Location: n.Location(), Message: text}
	}
}

// walk looks at a node and all below it, inside so many loops.
func (b *bounds) walk(n ast.Node, loops int) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		b.body, b.json = b.body || n.Value == "body", b.json || n.Value == "json"
	case *ast.BuiltinNode:
		if !slices.Contains(filterFunctions, n.Name) {
			b.refuse(n, n.Name+" is not allowed here")
		}
	case *ast.PredicateNode:
		if loops > 0 {
			b.refuse(n, "a loop inside a loop is not allowed")
		}
		loops++
	case *ast.BinaryNode:
		b.binary(n)
	}
	for _, child := range children(n) {
		b.walk(child, loops)
	}
}

func (b *bounds) binary(n *ast.BinaryNode) {
	switch n.Operator {
	case "..":
		b.refuse(n, "ranges are not allowed")
	case "matches":
		if _, ok := n.Right.(*ast.StringNode); !ok {
			b.refuse(n, "the pattern of matches must be a text in quotes")
		}
	case "+":
		if k := n.Type(); k == nil || !isNumber(k.Kind()) && k != timeType && k != durationType {
			b.refuse(n, "only numbers and times can be added")
		}
	case "**", "^":
		b.refuse(n, "powers are not allowed")
	}
}

// Text returns the filter as it was written.
func (f *Filter) Text() string {
	if f == nil {
		return ""
	}
	return f.text
}

// Match reports whether the letter meets the condition. An error means that it cannot be asked of this letter, because its
// body is no JSON for example; it then does not match.
func (f *Filter) Match(l Letter) (bool, error) {
	if f == nil {
		return true, nil
	}
	env := fieldsOf(l, f.needsBody)
	if f.needsJSON {
		if v, err := decodeExact([]byte(env.Body)); err == nil { // otherwise as a field that is not there
			env.JSON = plainNumbers(v)
		}
	}
	machine := vm.VM{MemoryBudget: maxFilterMemory}
	out, err := machine.Run(f.program, env)
	if err != nil {
		return false, driver.NewError(driver.ErrInvalid, fmt.Sprintf("the filter cannot be asked of letter %s: %v", l.name(), brief(err)), "guard it: json?.user?.id, or type(json) == \"map\" and ...", nil)
	}
	yes, _ := out.(bool)
	return yes, nil
}

// plainNumbers makes integers of what is written as one, and floats of other numbers.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plainNumbers(e)
		}
	case []any:
		for i, e := range v {
			v[i] = plainNumbers(e)
		}
	case json.Number:
		if n, err := strconv.Atoi(string(v)); err == nil {
			return n
		}
		f, _ := v.Float64() // too large is infinite
		return f
	}
	return v
}

// brief is the message of an error of the language without the picture.
func brief(err error) string {
	var at *file.Error
	if errors.As(err, &at) {
		return at.Message
	}
	return err.Error()
}

// fieldsOf returns what a filter sees of a letter; its body, which may be large, only if it is asked for.
func fieldsOf(l Letter, body bool) fields {
	f := fields{Topic: l.From, Group: l.Group, Ref: l.Ref.String(), Size: l.size(), Problem: l.Problem}
	if body {
		f.Body = string(l.Raw)
	}
	if m := l.Message; m != nil {
		f.ID, f.Key, f.Priority, f.ContentType, f.Headers = m.ID, m.Key, m.Priority.String(), m.ContentType, m.Headers
		if f.PublishedAt = m.PublishedAt; body {
			f.Body = string(m.Body)
		}
	}
	if d := l.Dead; d != nil {
		f.Reason, f.Error, f.Fingerprint, f.Stack, f.Action = string(d.Reason), d.Error, d.Fingerprint, d.Stack, string(d.Action)
		f.Recoverable, f.Attempts, f.Deliveries, f.Rounds = d.Recoverable, d.Attempts, d.Deliveries, d.Rounds
		f.Instance, f.DiedAt, f.Age = d.Origin.Instance, d.DiedAt, time.Since(d.DiedAt)
	}
	return f
}
