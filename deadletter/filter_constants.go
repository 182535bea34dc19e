package deadletter

import (
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
)

// constantHints say how the argument of a function is written that takes only some texts.
var constantHints = map[string]string{
	"duration": `write a duration as "90s", "1h30m" or "24h"`,
	"date":     `write a date as "2026-01-31" or "2026-01-31T15:04:05Z"`,
	"int":      `write a whole number as "42"`,
	"float":    `write a number as "1.5"`,
}

// constant refuses a call whose arguments are all written out and which fails: it would fail for every letter.
func (b *bounds) constant(n *ast.BuiltinNode) {
	if b.broken != nil || !isConstant(n) {
		return
	}
	if _, err := expr.Eval(n.String(), nil); err != nil {
		b.refuse(n, n.String()+" has no value: "+brief(err))
		b.hint = constantHints[n.Name]
	}
}

// isConstant reports whether a node means the same for every letter.
func isConstant(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NilNode, *ast.ConstantNode:
		return true
	case *ast.UnaryNode:
		return isConstant(n.Node)
	case *ast.BuiltinNode:
		return n.Name != "now" && n.Map == nil && slices.Contains(filterFunctions, n.Name) &&
			!slices.ContainsFunc(n.Arguments, func(a ast.Node) bool { return !isConstant(a) })
	}
	return false
}
