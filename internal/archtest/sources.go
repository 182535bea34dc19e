package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Source is one text file of the repository. Path is relative to its root, with slashes.
type Source struct {
	Path string
	Text []byte
	// Go is the parsed file, or nil for other text. A file that does not parse is left to the compiler.
	Go *ast.File
	// Lines converts positions in Go to lines.
	Lines *token.FileSet
}

// Test reports whether the file is compiled into tests only.
func (s Source) Test() bool { return strings.HasSuffix(s.Path, "_test.go") }

// Package is the directory of the file, "." for the root.
func (s Source) Package() string {
	dir, _, found := cutLast(s.Path, "/")
	if !found {
		return "."
	}
	return dir
}

// excepted reports whether a package is in a table of exceptions.
func excepted(name string, table map[string]string) bool { return matches(name, sortedKeys(table)) }

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// skipped are names without sources of ours below them: what builds and runs leave behind, and inputs of tests. In a
// linked worktree .git is a file.
var skipped = []string{".git", ".cache", ".ferry", "bin", "dist", "node_modules", "testdata"}

const maxSource = 1 << 20

// readSources reads all text files below dir. Because this process opens them itself, Go's test cache knows that the
// result depends on them.
func readSources(dir string) ([]Source, error) {
	var sources []Source
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch skip := slices.Contains(skipped, d.Name()); {
		case d.IsDir() && skip:
			return filepath.SkipDir
		case d.IsDir() || skip:
			return nil
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxSource {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		name, err := filepath.Rel(dir, path)
		sources = append(sources, parse(filepath.ToSlash(name), text))
		return err
	})
	return sources, err
}

func parse(path string, text []byte) Source {
	s := Source{Path: path, Text: text, Lines: token.NewFileSet()}
	if strings.HasSuffix(path, ".go") {
		if f, err := parser.ParseFile(s.Lines, path, text, parser.ParseComments|parser.SkipObjectResolution); err == nil {
			s.Go = f
		}
	}
	return s
}

// at names a place in the file.
func (s Source) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", s.Path, s.Lines.Position(pos).Line)
}

// importName returns the name under which a file knows an imported package, or "" when it does not import it.
func importName(f *ast.File, path string) string {
	for _, spec := range f.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		_, name, found := cutLast(path, "/")
		if !found {
			return path
		}
		return name
	}
	return ""
}

// uses returns the places where node refers to name of a package known as pkg.
func uses(node ast.Node, pkg, name string) []token.Pos {
	var places []token.Pos
	ast.Inspect(node, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == pkg && pkg != "" {
				places = append(places, sel.Pos())
			}
		}
		return true
	})
	return places
}
