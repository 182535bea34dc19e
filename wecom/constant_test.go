package wecom_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// Time cannot be measured well enough to tell how signatures are compared, so that the source is looked at: Keys.Open
// hands the signature to subtle.ConstantTimeCompare and to nothing else.
//
// Lessons: L43
func TestSignatureIsComparedInConstantTime(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "keys.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	uses, compared := 0, 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "Open" {
			continue
		}
		uses += named(f.Body, "signature")
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && named(call.Fun, "ConstantTimeCompare") == 1 {
				compared += named(call, "signature")
			}
			return true
		})
	}
	if uses != 1 || compared != 1 {
		t.Errorf("the signature is used %d times, %d of them in constant time; want 1", uses, compared)
	}
}

// named counts the identifiers of a name.
func named(n ast.Node, name string) (count int) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			count++
		}
		return true
	})
	return count
}
