package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Package is what `go list -json` tells of one package, as far as the rules need it.
type Package struct {
	ImportPath   string
	Name         string
	Dir          string
	Standard     bool
	Module       *struct{ Path, Dir string }
	Imports      []string
	TestImports  []string
	XTestImports []string
	TestGoFiles  []string
	XTestGoFiles []string
}

// list runs go list in dir. Packages that do not compile are listed too: the compiler complains about them better.
func list(dir string, args ...string) ([]Package, error) {
	const fields = "-json=ImportPath,Name,Dir,Standard,Module,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles"
	cmd := exec.Command("go", append([]string{"list", "-e", fields}, args...)...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	var packages []Package
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p Package
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("the output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// short returns an import path relative to the module, "." for the root, and whether it is ours at all.
func short(path string) (string, bool) {
	if path == Module {
		return ".", true
	}
	return strings.CutPrefix(path, Module+"/")
}

// matches reports whether a relative package path fits one of the patterns of a Layer.
func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if pattern == "..." {
			return true
		}
		if parent, ok := strings.CutSuffix(pattern, "/..."); ok {
			return path == parent || strings.HasPrefix(path, parent+"/")
		}
		if parent, ok := strings.CutSuffix(pattern, "/*"); ok {
			child, below := strings.CutPrefix(path, parent+"/")
			return below && !strings.Contains(child, "/")
		}
		return path == pattern
	})
}

// checkImports returns one sentence for each import that breaks a rule.
func checkImports(packages []Package, layers []Layer) []string {
	var broken []string
	for _, p := range packages {
		name, ours := short(p.ImportPath)
		if !ours {
			continue
		}
		i := slices.IndexFunc(layers, func(l Layer) bool { return matches(name, l.Packages) })
		if i < 0 {
			broken = append(broken, fmt.Sprintf("%s is in no row of Layers (internal/archtest/rules.go): add it to one", name))
			continue
		}
		layer := layers[i]
		for _, imported := range p.Imports {
			broken = append(broken, checkImport(name, imported, layer, layer.May, "")...)
		}
		tests := []string{"..."}
		if layer.Tests != nil {
			tests = append(slices.Clone(layer.May), layer.Tests...)
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			broken = append(broken, checkImport(name, imported, layer, append(tests, name), " in its tests")...)
		}
	}
	return broken
}

func checkImport(name, path string, layer Layer, may []string, where string) []string {
	imported, ours := short(path)
	if !ours {
		return nil
	}
	if matches(imported, []string{"cmd/..."}) && !matches(name, []string{"cmd/..."}) {
		return []string{fmt.Sprintf("%s imports %s%s: nothing imports a command", name, imported, where)}
	}
	if matches(imported, may) {
		return nil
	}
	return []string{fmt.Sprintf("%s imports %s%s: %s", name, imported, where, layer.Why)}
}

// checkLinks returns one sentence, with the chain of imports, for each third-party module that the package from links
// through something outside allowed. The packages are those of `go list -deps`.
func checkLinks(from string, packages []Package, allowed []string) []string {
	byPath := make(map[string]Package, len(packages))
	for _, p := range packages {
		byPath[p.ImportPath] = p
	}
	var broken []string
	blamed := map[string]bool{}
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] { // breadth first: the shortest chain is shown
		p := byPath[queue[0]]
		if slices.Contains(allowed, p.ImportPath) {
			continue
		}
		if m := p.Module; m != nil && m.Path != Module {
			if !blamed[m.Path] {
				blamed[m.Path] = true
				broken = append(broken, fmt.Sprintf("%s links the module %s: %s", from, m.Path, chain(before, p.ImportPath)))
			}
			continue
		}
		for _, imported := range p.Imports {
			if _, seen := before[imported]; !seen {
				before[imported] = p.ImportPath
				queue = append(queue, imported)
			}
		}
	}
	return broken
}

// chain shows how the walk came to a package.
func chain(before map[string]string, path string) string {
	steps := []string{path}
	for before[path] != "" {
		path = before[path]
		steps = append(steps, path)
	}
	slices.Reverse(steps)
	return strings.Join(steps, " -> ")
}
