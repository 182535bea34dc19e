package archtest

import "testing"

// TestShape shows with -v what it counted.
func TestShape(t *testing.T) {
	t.Parallel()
	sources, err := read()
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range Shapes {
		lines, methods, broken := checkShape(sources, shape)
		most := ""
		for name, n := range methods {
			if n > methods[most] {
				most = name
			}
		}
		t.Logf("%s: %d of %d lines, %s has %d of %d methods", shape.Package, lines, shape.Lines, most, methods[most],
			shape.Methods)
		if lines == 0 || methods[most] == 0 {
			t.Errorf("%s: nothing was counted: the test looks in the wrong place", shape.Package)
		}
		report(t, broken)
	}
}

func TestShapeCanFail(t *testing.T) {
	t.Parallel()
	sources := []Source{
		parse("driver/a/a.go", []byte("package a\n\ntype x[T any] struct{}\n\nfunc (x[T]) f() {}\n\nfunc (*x[T]) g() {}\n")),
		parse("driver/a/internal/b/b.go", []byte("package b\n\ntype y int\n\nfunc (y) f() {}\n")),
		parse("driver/a/a_test.go", []byte("package a\n\nfunc (x[T]) h() {}\n")),
		parse("driver/ab/a.go", []byte("package ab\n\nfunc (x) h() {}\n")),
	}
	lines, methods, broken := checkShape(sources, Shape{Package: "driver/a", Lines: 7, Methods: 2})
	right := lines == 7 && methods["driver/a.x"] == 2 && methods["driver/a/internal/b.y"] == 1 && len(methods) == 2
	if !right || len(broken) != 0 {
		t.Errorf("counted %d lines and %v: %q", lines, methods, broken)
	}
	if _, _, broken := checkShape(sources, Shape{Package: "driver/a", Lines: 6, Methods: 1}); len(broken) != 2 {
		t.Errorf("7 of 6 lines, and 2 of 1 method: %q", broken)
	}
}
