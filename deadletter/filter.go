package deadletter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/ferrymq/ferry/driver"
)

// Filter is a condition on letters, in the language of expr-lang: reason == "timeout" and attempts > 3. It is safe for
// concurrent use, and its evaluation is bounded: each part of it looks at a letter once (see bounds), and a letter that
// is too large for so many parts is not asked.
type Filter struct {
	text                 string
	program              *vm.Program
	needsBody, needsJSON bool
	weight               int      // how often it may look at every byte of a letter
	names                []string // of the fields that it asks for
}

// fields are what a filter may name. Of a parse error only id, topic, ref, size, problem, body (what was found),
// died_at and age (when that was) are set, and of a message that lives what is known of its failed attempts.
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
const FilterFields = "id, topic, group, key, ref, reason, error, fingerprint, stack, action, recoverable, attempts, " +
	"deliveries, rounds, instance, " +
	"priority, content_type, headers, body (text), json (the body as JSON), size, problem, published_at, died_at, age"

const (
	maxFilterText   = 4 << 10
	maxFilterNodes  = 100
	maxFilterMemory = 100_000 // elements of lists that one evaluation may make
	maxFilterSteps  = 500_000_000

	smallPart = 128 << 10 // what a letter has at most beside its body: headers, stack, error
)

// filterFunctions are the functions of expr-lang that can neither loop without bound nor make anything large.
var filterFunctions = []string{"len", "lower", "upper", "trim", "trimPrefix", "trimSuffix", "hasPrefix", "hasSuffix",
	"indexOf", "int", "float", "string",
	"type", "abs", "first", "last", "get", "keys", "values", "duration", "date", "now", "any", "all", "none",
	"one", "count"}

// ParseFilter reads a condition. The error of a broken one tells the column.
func ParseFilter(text string) (*Filter, error) {
	if len(text) > maxFilterText {
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("filter of %d bytes is too long", len(text)),
			fmt.Sprintf("use at most %d bytes", maxFilterText), nil)
	}
	options := []expr.Option{expr.Env(fields{}), expr.AsBool(), expr.MaxNodes(maxFilterNodes), expr.DisableAllBuiltins()}
	for _, name := range filterFunctions {
		options = append(options, expr.EnableBuiltin(name))
	}
	plain, err := expr.Compile(text, append(options, expr.Optimize(false))...) // the optimizer hides what was written
	if err != nil {
		return nil, filterError(text, err, "")
	}
	c := bounds{}
	c.walk(plain.Node(), false)
	if c.broken != nil {
		return nil, filterError(text, c.broken.Bind(file.NewSource(text)), c.hint)
	}
	program, err := expr.Compile(text, options...)
	if err != nil {
		return nil, filterError(text, err, "")
	}
	return &Filter{text: text, program: program, needsBody: c.body || c.json, needsJSON: c.json, weight: c.weight,
		names: c.names}, nil
}

// filterError says where a filter is broken, and how to mend it: an empty hint names the fields.
func filterError(text string, err error, hint string) error {
	var at *file.Error
	hint = cmp.Or(hint, "it may use "+FilterFields)
	if !errors.As(err, &at) {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("filter %.200q is broken: %v", text, err), hint, nil)
	}
	place := fmt.Sprintf("column %d", at.Column+1)
	if at.Line > 1 {
		place = fmt.Sprintf("line %d, column %d", at.Line, at.Column+1)
	}
	return driver.NewError(driver.ErrInvalid,
		fmt.Sprintf("filter %.200q is broken at %s: %s", text, place, at.Message), hint, nil)
}

// Text returns the filter as it was written.
func (f *Filter) Text() string {
	if f == nil {
		return ""
	}
	return f.text
}

// Reads reports whether the filter asks for a field: one of FilterFields. Whoever may not see a field must not filter
// by it either.
func (f *Filter) Reads(field string) bool { return f != nil && slices.Contains(f.names, field) }

// Steps is how many steps it takes at most to ask the filter of a letter with a body of so many bytes. Match asks where
// that is at most 500 million.
func (f *Filter) Steps(body int) int {
	size := smallPart
	if f.needsBody {
		size += body
	}
	return f.weight * size
}

// Match reports whether the letter meets the condition. An error means that it cannot be asked of this letter, because
// its body is no JSON for example; it then does not match. When ctx has ended, its error is returned bare.
func (f *Filter) Match(ctx context.Context, l Letter) (bool, error) {
	if f == nil {
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if f.Steps(l.size()) > maxFilterSteps {
		return false, driver.NewError(driver.ErrInvalid,
			fmt.Sprintf("the filter takes too long for letter %s with its %d bytes", l.name(), l.size()),
			"use fewer and shorter patterns, or ask for less of the body", nil)
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
		return false, driver.NewError(driver.ErrInvalid,
			fmt.Sprintf("the filter cannot be asked of letter %s: %v", l.name(), brief(err)),
			"guard it: json?.user?.id, or type(json) == \"map\" and ...", nil)
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
	if l.Dead == nil && l.Message != nil { // it lives: what failed so far
		f.Attempts, f.Deliveries, f.Instance = max(0, l.Attempt-1), l.Deliveries, l.Instance
		if n := len(l.History); n > 0 {
			last := l.History[n-1]
			f.Reason, f.Error, f.Stack, f.Fingerprint = string(last.Reason), last.Error, last.Stack,
				driver.Fingerprint(last.Error)
		}
	}
	if at := l.FoundAt; !at.IsZero() {
		f.DiedAt, f.Age = at, time.Since(at)
	}
	if d := l.Dead; d != nil {
		f.Reason, f.Error, f.Fingerprint, f.Stack, f.Action = string(d.Reason), d.Error, d.Fingerprint,
			d.Stack, string(d.Action)
		f.Recoverable, f.Attempts, f.Deliveries, f.Rounds = d.Recoverable, d.Attempts, d.Deliveries, d.Rounds
		f.Instance, f.DiedAt, f.Age = d.Origin.Instance, d.DiedAt, time.Since(d.DiedAt)
	}
	return f
}
