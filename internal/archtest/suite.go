package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// suitePackage is the conformance suite. Its cases are tests although they are not Test functions.
const suitePackage = "driver/drivertest"

// suite are the cases of the conformance suite, read from the literals of type Case and []Case in its source.
type suite struct {
	names     []string
	functions map[string]string // function to case name
}

func suiteCases(sources []Source) suite {
	cases := suite{functions: map[string]string{}}
	for _, s := range sources {
		if s.Go == nil || s.Test() || s.Package() != suitePackage {
			continue
		}
		ast.Inspect(s.Go, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				cases.addLiteral(n)
			case *ast.CallExpr:
				cases.addSubtest(n)
			}
			return true
		})
	}
	return cases
}

func (c *suite) addLiteral(lit *ast.CompositeLit) {
	if named(lit.Type, "Case") {
		c.addCase(lit)
	}
	array, ok := lit.Type.(*ast.ArrayType)
	if !ok || !named(array.Elt, "Case") {
		return
	}
	for _, element := range lit.Elts {
		if e, ok := element.(*ast.CompositeLit); ok && e.Type == nil {
			c.addCase(e)
		}
	}
}

// addCase takes the first string as the name of the case and all plain identifiers as functions it runs.
func (c *suite) addCase(lit *ast.CompositeLit) {
	name := ""
	for _, element := range lit.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
		}
		switch e := element.(type) {
		case *ast.BasicLit:
			if text, ok := stringLiteral(e); ok && name == "" {
				name = text
				c.names = append(c.names, name)
			}
		case *ast.Ident:
			if name != "" {
				c.functions[e.Name] = name
			}
		}
	}
}

// addSubtest finds parts of the suite that are subtests of their own: t.Run("history", ...).
func (c *suite) addSubtest(call *ast.CallExpr) {
	if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "Run" || len(call.Args) != 2 {
		return
	}
	if lit, ok := call.Args[0].(*ast.BasicLit); ok {
		if text, ok := stringLiteral(lit); ok {
			c.names = append(c.names, text)
		}
	}
}

func stringLiteral(lit *ast.BasicLit) (string, bool) {
	if lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil && !strings.ContainsAny(text, "\n`")
}

func named(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
