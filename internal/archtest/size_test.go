package archtest

import "testing"

// TestSize shows with -v how much code the drivers and the engine are.
func TestSize(t *testing.T) {
	t.Parallel()
	sources, err := read()
	if err != nil {
		t.Fatal(err)
	}
	lines := countLines(sources, Counted)
	for _, folder := range sortedKeys(lines) {
		t.Logf("%6d %s", lines[folder], folder)
	}
	sum, broken := checkSize(lines, MostLines)
	t.Logf("%6d of at most %d", sum, MostLines)
	if sum < MostLines/2 {
		t.Errorf("only %d lines: the test looks in the wrong place", sum)
	}
	report(t, broken)
}

func TestSizeCanFail(t *testing.T) {
	t.Parallel()
	lines := countLines([]Source{
		{Path: "driver/a/a.go", Text: []byte("// Package a.\npackage a\n\nimport (\n\t\"x\"\n)\n\n" +
			"\t// why\n\tvar x = 1 // here\n")},
		{Path: "driver/a/lua/a.lua", Text: []byte("-- what\n\nreturn 1")},
		{Path: "driver/a/a_test.go", Text: []byte("package a\n")},
		{Path: "driver/a/a.md", Text: []byte("text\n")},
		{Path: "driver/ab/a.go", Text: []byte("package ab\n")},
	}, []string{"driver/a"})
	if lines["driver/a"] != 2 || len(lines) != 1 {
		t.Errorf("counted %v, want 2 lines", lines)
	}
	if sum, broken := checkSize(lines, 3); sum != 2 || len(broken) != 0 {
		t.Errorf("2 of 2 lines: %d, %q", sum, broken)
	}
	if _, broken := checkSize(lines, 1); len(broken) != 1 {
		t.Errorf("2 of 1 lines: %q", broken)
	}
}
