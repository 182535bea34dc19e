package alert

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/notify"
)

// Severity says how bad it is.
type Severity string

// Severities, from a note to what wakes people up.
const (
	Info      Severity = "info"
	Warning   Severity = "warning"
	Critical  Severity = "critical"
	Page      Severity = "page"
	Emergency Severity = "emergency"
)

// severities and the lanes of their notices.
var severities = map[Severity]notify.Priority{
	Info: notify.Low, Warning: notify.Normal, Critical: notify.High, Page: notify.Urgent, Emergency: notify.Urgent,
}

// Rule says what is wrong when.
type Rule struct {
	// Name is unique among the rules, at most 120 bytes without '/'.
	Name string `yaml:"name" json:"name"`
	// When is the condition, in the language of expr-lang over the figures of Figures: queue_depth > threshold. Empty: the
	// rule is of events, which Raise tells.
	When      string  `yaml:"when" json:"when,omitempty"`
	Threshold float64 `yaml:"threshold" json:"threshold"`
	// Severity defaults to warning.
	Severity Severity `yaml:"severity" json:"severity"`
	// For is how long the condition must hold. Zero: once.
	For time.Duration `yaml:"for" json:"for"`
	// Cooldown is how long after a notice the next one of the same subject is sent at the earliest, while it lasts or when
	// it comes again. Defaults to 5 minutes.
	Cooldown time.Duration `yaml:"cooldown" json:"cooldown"`
	// Channels are names of Options.Channels; those that are not there are left out, and none at all is refused. Defaults
	// to all.
	Channels []string `yaml:"channels" json:"channels,omitempty"`
	// Text is the body of notices, a notify.Template over the figures and rule, topic, group, breaker, subject,
	// threshold, severity. Defaults to what the condition says.
	Text string `yaml:"text" json:"text,omitempty"`
	// Action says what to do. It is added to the body.
	Action string `yaml:"action" json:"action,omitempty"`
	// Topics and Groups are patterns as of path.Match. Default to all.
	Topics []string `yaml:"topics" json:"topics,omitempty"`
	Groups []string `yaml:"groups" json:"groups,omitempty"`
	// Disabled rules are kept and not evaluated.
	Disabled bool `yaml:"disabled" json:"disabled,omitempty"`
	// PromQL is what the condition compares with threshold, for Prometheus, or the whole condition where that does not
	// name threshold. Empty: the rule is not in Prometheus' file.
	PromQL string `yaml:"promql" json:"promql,omitempty"`
}

const (
	defaultCooldown = 5 * time.Minute
	maxRuleName     = 120
	maxNodes        = 100
)

// compiled is a rule that was checked.
type compiled struct {
	Rule
	program   *vm.Program // nil: of events
	level     level
	uses      []string // figures that must be known
	text      notify.Template
	threshold any    // as the condition sees it
	operator  string // that compares with threshold; empty: none does
}

// bad is the error of a wrong rule.
func bad(rule, hint, format string, args ...any) error {
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("rule %.60q: ", rule)+fmt.Sprintf(format, args...), hint, nil)
}

// Check says what is wrong with rules, or nil.
func Check(rules []Rule) error {
	_, err := compile(rules)
	return err
}

// compile checks rules. The error joins what is wrong with each.
func compile(rules []Rule) ([]*compiled, error) {
	var all []*compiled
	var errs []error
	names := map[string]bool{}
	for _, r := range rules {
		if names[r.Name] {
			errs = append(errs, bad(r.Name, "give one of them another name", "there are two of this name"))
		}
		names[r.Name] = true
		c, err := r.compile()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, c)
	}
	return all, errors.Join(errs...)
}

func (r Rule) compile() (*compiled, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.Severity == "" {
		r.Severity = Warning
	}
	if r.Cooldown == 0 {
		r.Cooldown = defaultCooldown
	}
	c := &compiled{Rule: r, threshold: r.Threshold}
	if r.When != "" {
		if err := c.parse(); err != nil {
			return nil, err
		}
	}
	return c, c.parseText()
}

func (r Rule) check() error {
	if r.Name == "" || len(r.Name) > maxRuleName || strings.Contains(r.Name, "/") || !utf8.ValidString(r.Name) ||
		strings.ContainsFunc(r.Name, unicode.IsControl) {
		return bad(r.Name, fmt.Sprintf("use 1 to %d bytes of text without '/'", maxRuleName), "the name is not usable")
	}
	if _, ok := severities[r.Severity]; !ok && r.Severity != "" {
		return bad(r.Name, "use info, warning, critical, page or emergency", "the severity %q does not exist", r.Severity)
	}
	if math.IsNaN(r.Threshold) || math.IsInf(r.Threshold, 0) {
		return bad(r.Name, "use a number", "the threshold is %v: nothing compares with it", r.Threshold)
	}
	if r.For < 0 || r.Cooldown < 0 {
		return bad(r.Name, "use zero or more", "a time is negative")
	}
	for _, p := range slices.Concat(r.Topics, r.Groups) {
		if _, err := path.Match(p, ""); err != nil {
			return bad(r.Name, "write it as of path.Match: orders.*", "the pattern %q is broken", p)
		}
	}
	return nil
}

// parse reads the condition.
func (c *compiled) parse() error {
	program, err := expr.Compile(c.When, expr.Env(environment()), expr.AsBool(), expr.MaxNodes(maxNodes),
		expr.DisableAllBuiltins())
	if err != nil {
		return c.broken(err)
	}
	tree, err := expr.Compile(c.When, expr.Env(environment()), expr.AsBool(), expr.Optimize(false),
		expr.DisableAllBuiltins())
	if err != nil {
		return c.broken(err)
	}
	look := &reader{threshold: c.Threshold}
	node := tree.Node()
	ast.Walk(&node, look)
	switch {
	case len(look.uses) == 0:
		return bad(c.Name, "compare a figure: queue_depth > threshold",
			"the condition names no figure, and is always the same")
	case look.level == ofBreaker && look.queues:
		return bad(c.Name, "make two rules of it", "it can never fire: a breaker belongs to no topic or group")
	case look.never != "":
		return bad(c.Name, "shares are from 0 to 1: write 0.05 for 5 %; counts are not negative", "it can never fire: %s",
			look.never)
	}
	if _, err := expr.Run(program, environment()); err != nil {
		return c.broken(err)
	}
	c.program, c.level, c.uses, c.operator = program, look.level, look.uses, look.operator
	return nil
}

// broken says in which column a condition is wrong.
func (c *compiled) broken(err error) error {
	var at *file.Error
	if errors.As(err, &at) {
		return bad(c.Name, "it may use "+strings.Join(Figures(), ", "), "column %d of the condition: %s", at.Column+1,
			at.Message)
	}
	return bad(c.Name, "it may use "+strings.Join(Figures(), ", "), "the condition is broken: %v", err)
}

// parseText reads the text, and tries it.
func (c *compiled) parseText() (err error) {
	text := c.Text
	if text == "" {
		text = "{rule}: {subject}"
		for _, name := range c.uses {
			text += ", " + name + " = {" + name + "}"
		}
	}
	if c.text, err = notify.ParseTemplate(text); err != nil {
		return bad(c.Name, "see docs/notify.md", "text: %v", err)
	}
	if c.program == nil {
		return nil // events bring values of their own
	}
	sample := environment()
	sample["severity"], sample["subject"], sample["rule"] = "", "", ""
	if _, err := c.text.Execute(sample); err != nil {
		return bad(c.Name, "use figures, or rule, subject, topic, group, breaker, threshold, severity", "text: %v", err)
	}
	return nil
}

// wants reports whether the rule is about a subject of its level.
func (c *compiled) wants(s *subject) bool {
	return matches(c.Topics, s.topic) && matches(c.Groups, s.group)
}

func matches(patterns []string, name string) bool {
	if len(patterns) == 0 || name == "" {
		return true
	}
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// reader looks at what a condition names.
type reader struct {
	threshold float64
	uses      []string
	level     level
	queues    bool // figures of topics or groups
	never     string
	operator  string // that compares with threshold
}

// Visit sees each part of the condition.
func (r *reader) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if f, ok := figures[n.Value]; ok {
			if !slices.Contains(r.uses, n.Value) {
				r.uses = append(r.uses, n.Value)
			}
			r.level = max(r.level, f.level)
			r.queues = r.queues || f.level == ofTopic || f.level == ofGroup
		}
	case *ast.BinaryNode:
		if right, ok := n.Right.(*ast.IdentifierNode); ok && right.Value == "threshold" {
			r.operator = n.Operator
		}
		r.compare(n)
		if n.Operator == "and" || n.Operator == "&&" {
			r.contradiction(n)
		}
	}
}

// contradiction finds figures of which a condition wants two things that exclude each other.
func (r *reader) contradiction(n ast.Node) {
	wanted := map[string]interval{}
	var visit func(n ast.Node)
	visit = func(n ast.Node) {
		b, ok := n.(*ast.BinaryNode)
		if !ok {
			return
		}
		if b.Operator == "and" || b.Operator == "&&" {
			visit(b.Left)
			visit(b.Right)
			return
		}
		name, operator, limit, ok := r.comparison(b)
		if !ok {
			return
		}
		v, seen := wanted[name]
		if !seen {
			v = figures[name].values()
		}
		if wanted[name] = v.meet(operator, limit); wanted[name].empty() {
			r.never = "no " + name + " is what it asks for"
		}
	}
	visit(n)
}

// compare finds comparisons that never hold: of a share with more than one, of a count with less than none.
func (r *reader) compare(n *ast.BinaryNode) {
	name, operator, limit, ok := r.comparison(n)
	if !ok {
		return
	}
	if f := figures[name]; f.values().meet(operator, limit).empty() {
		r.never = fmt.Sprintf("%s %s %v", name, operator, limit)
	}
}

// mirrored are the operators that say the same of two sides in the other order.
var mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}

// comparison reads a comparison of a figure with a number, in either order.
func (r *reader) comparison(n *ast.BinaryNode) (name, operator string, limit float64, ok bool) {
	left, right, operator := n.Left, n.Right, n.Operator
	if _, known := mirrored[operator]; !known {
		return "", "", 0, false
	}
	if _, constant := r.number(left); constant {
		left, right, operator = right, left, mirrored[operator]
	}
	identifier, isName := left.(*ast.IdentifierNode)
	limit, constant := r.number(right)
	if !isName || !constant {
		return "", "", 0, false
	}
	_, ok = figures[identifier.Value]
	return identifier.Value, operator, limit, ok
}

func (r *reader) number(n ast.Node) (float64, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return float64(n.Value), true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.UnaryNode:
		v, ok := r.number(n.Node)
		return -v, ok && n.Operator == "-"
	case *ast.IdentifierNode:
		return r.threshold, n.Value == "threshold"
	}
	return 0, false
}
