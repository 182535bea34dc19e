package deadletter

import (
	"regexp/syntax"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"

	"github.com/ferrymq/ferry/driver"
)

// bounds finds what could make an evaluation long or large. What is left looks at each byte of a letter at most once
// for each node and for each instruction of a pattern:
//   - a loop sees its element and short fields only, so that all its rounds together see the list once;
//   - nothing makes a list or a text of others, which could grow with each use.
type bounds struct {
	body, json bool // is asked for
	names      []string
	weight     int // nodes, and instructions of patterns
	broken     *file.Error
	hint       string // how to mend it; empty: which names there are
}

// shortField is the most bytes of shortFields.
const shortField = driver.MaxKeyLen

var shortFields = []string{"id", "topic", "group", "key", "ref", "action", "recoverable", "attempts", "deliveries",
	"rounds", "instance", "priority",
	"content_type", "size", "published_at", "died_at", "age"}

func (b *bounds) refuse(n ast.Node, text string) {
	if b.broken == nil {
		b.broken = &file.Error{Location: n.Location(), Message: text}
	}
}

// walk looks at a node and all below it, in a loop or not.
func (b *bounds) walk(n ast.Node, loop bool) {
	b.weight++
	switch n := n.(type) {
	case *ast.IdentifierNode:
		b.identifier(n, loop)
	case *ast.StringNode:
		if loop { // an element may have a byte or two
			b.weight += len(n.Value)
		}
	case *ast.BuiltinNode:
		if !slices.Contains(filterFunctions, n.Name) {
			b.refuse(n, n.Name+" is not allowed here")
		} else {
			b.constant(n)
		}
	case *ast.PredicateNode:
		if loop {
			b.refuse(n, "a loop inside a loop is not allowed")
		}
		loop = true
	case *ast.VariableDeclaratorNode:
		if loop {
			b.refuse(n, "let inside a loop is not allowed")
		}
	case *ast.ArrayNode:
		if slices.ContainsFunc(n.Nodes, func(e ast.Node) bool { return !isShort(e) }) {
			b.refuse(n, "a list may have texts, numbers and short fields only")
		}
	case *ast.MapNode:
		b.refuse(n, "maps are not allowed")
	case *ast.BinaryNode:
		b.binary(n, loop)
	}
	for _, child := range children(n) {
		b.walk(child, loop)
	}
}

func (b *bounds) identifier(n *ast.IdentifierNode, loop bool) {
	b.names = append(b.names, n.Value)
	b.body, b.json = b.body || n.Value == "body", b.json || n.Value == "json"
	if loop && !slices.Contains(shortFields, n.Value) {
		b.refuse(n, n.Value+" is not allowed inside a loop: it sees # and short fields, and "+n.Value+" may be long")
	}
	if loop {
		b.weight += shortField
	}
	if n.Value == "$env" {
		b.refuse(n, "$env is not allowed")
	}
}

func (b *bounds) binary(n *ast.BinaryNode, loop bool) {
	switch n.Operator {
	case "..":
		b.refuse(n, "ranges are not allowed")
	case "matches":
		if loop && !isElement(n.Left) {
			b.refuse(n, "inside a loop only the element can match a pattern")
		}
		b.pattern(n)
	case "+":
		if k := n.Type(); k == nil || !isNumber(k.Kind()) && k != timeType && k != durationType {
			b.refuse(n, "only numbers and times can be added")
		}
	case "**", "^":
		b.refuse(n, "powers are not allowed")
	}
}

// maxPattern is the most instructions of one pattern: each may be tried at every byte.
const maxPattern = 1000

// pattern adds the instructions of a pattern to the weight.
func (b *bounds) pattern(n *ast.BinaryNode) {
	s, ok := n.Right.(*ast.StringNode)
	if !ok {
		b.refuse(n, "the pattern of matches must be a text in quotes")
		return
	}
	parsed, err := syntax.Parse(s.Value, syntax.Perl)
	if err != nil {
		return // the language has said so
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxPattern {
		b.refuse(s, "the pattern is too long: repetitions count as often as they repeat")
		return
	}
	b.weight += len(program.Inst)
}

// isShort reports whether a node is a text, a number or a short field.
func isShort(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode, *ast.ConstantNode:
		return true
	case *ast.UnaryNode: // a negative number
		return isShort(n.Node)
	case *ast.IdentifierNode:
		return slices.Contains(shortFields, n.Value) || n.Value == "reason"
	}
	return false
}

// isElement reports whether a node is the element of a loop, or a part of it.
func isElement(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.PointerNode:
		return true
	case *ast.MemberNode:
		return isElement(n.Node)
	case *ast.ChainNode:
		return isElement(n.Node)
	case *ast.BuiltinNode:
		return slices.Contains([]string{"lower", "upper", "trim", "string"}, n.Name) && len(n.Arguments) == 1 &&
			isElement(n.Arguments[0])
	}
	return false
}
