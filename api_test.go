package ferry_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A newcomer reads the root package in ten minutes: what must be known stays below this many names.
const mostNames = 84

func TestRootPackageStaysSmall(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			names = append(names, exported(d)...)
		}
	}
	if len(names) == 0 || len(names) > mostNames {
		t.Errorf("the root package exports %d names, at most %d are meant:\n%s", len(names), mostNames,
			strings.Join(names, " "))
	}
	t.Logf("%d names", len(names))
}

// A program uses these packages without package driver, which is for authors of drivers: nothing exported there needs
// one of its types by that name.
func TestUsersNeedNoTypeOfDriver(t *testing.T) {
	for _, dir := range []string{"worker", "guard", "deadletter", "monitor", "open", "codec", "ferrytest", "result"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range surface(f) {
				ast.Inspect(n, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && x.Name == "driver" {
							t.Errorf("%s: a user needs driver.%s; use its name in package ferry", fset.Position(s.Pos()), s.Sel.Name)
						}
					}
					return true
				})
			}
		}
	}
}

// surface returns the signatures of exported functions, and what exported types consist of. Aliases name a type on
// purpose.
func surface(f *ast.File) (nodes []ast.Node) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
				nodes = append(nodes, d.Type)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				t, ok := s.(*ast.TypeSpec)
				if !ok || !t.Name.IsExported() || t.Assign != token.NoPos {
					continue
				}
				st, ok := t.Type.(*ast.StructType)
				if !ok {
					nodes = append(nodes, t.Type)
					continue
				}
				for _, field := range st.Fields.List {
					if len(field.Names) == 0 || field.Names[0].IsExported() {
						nodes = append(nodes, field.Type)
					}
				}
			}
		}
	}
	return nodes
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	if g, ok := t.(*ast.IndexExpr); ok {
		t = g.X
	}
	id, _ := t.(*ast.Ident)
	return id.String()
}

func exported(d ast.Decl) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				add(s.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					add(n)
				}
			}
		}
	}
	return names
}
