package archtest

import (
	"fmt"
	"go/ast"
	"strings"
)

// Shapes bound packages that once had grown out of proportion: the lines of the package itself, and the methods of any
// type in it or below it.
var Shapes = []Shape{
	{Package: "driver/kafka", Lines: 5_000, Methods: 60},
}

// Shape is how large a package may be. Lines are all lines of its code without tests, comments and empty ones included;
// packages below it are bounded by Methods alone.
type Shape struct {
	Package string
	Lines   int
	Methods int
}

// checkShape complains about a package that has outgrown its bounds. It also returns what it counted.
func checkShape(sources []Source, shape Shape) (lines int, methods map[string]int, broken []string) {
	methods = map[string]int{}
	for _, s := range sources {
		if s.Go == nil || s.Test() || s.Package() != shape.Package && !strings.HasPrefix(s.Path, shape.Package+"/") {
			continue
		}
		if s.Package() == shape.Package {
			lines += strings.Count(string(s.Text), "\n")
		}
		for _, d := range s.Go.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && len(f.Recv.List) == 1 {
				methods[s.Package()+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	if lines > shape.Lines {
		broken = append(broken, fmt.Sprintf("%s has %d lines, more than %d: "+
			"move what belongs together into a package below it", shape.Package, lines, shape.Lines))
	}
	for _, name := range sortedKeys(methods) {
		if n := methods[name]; n > shape.Methods {
			broken = append(broken, fmt.Sprintf("%s has %d methods, more than %d: give a role of it a type of its own", name, n,
				shape.Methods))
		}
	}
	return lines, methods, broken
}

// receiver is the name of the type that a method belongs to.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}
