package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

// Retired are words that had several meanings in a package, or none that a reader could guess. Its glossary has others.
var Retired = []Words{
	{"driver/kafka", []string{"asked", "called", "handed", "handing", "loan", "loans", "making", "mourn", "park",
		"parked", "side", "sides", "standing", "thrifty", "visiting"}},
	{"driver/redis", []string{"ask", "joint", "kick", "parcel", "parcels", "stray", "word"}},
	{"driver/redisstream", []string{"ask", "joint", "kick", "parcel", "parcels", "stake", "stakes", "word"}},
	{"admin", []string{"clerk", "desk", "office"}},
	{"deadletter", []string{"clerk", "desk", "office"}},
	{"guard", []string{"desk"}},
	{"internal/engine", []string{"parcel", "parcels", "shelf"}},
	{"internal/redisshell", []string{"verdict", "verdicts"}},
	{"test/torture/rig", []string{"clerk", "desk", "loan", "office", "thrifty"}},
}

// Words are not in the name of anything that a package, or one below it, declares. Exported names are settled.
type Words struct {
	Package string
	Words   []string
}

// checkWords complains about names with a retired word.
func checkWords(s Source, retired Words) (broken []string) {
	if s.Go == nil || s.Test() || s.Package() != retired.Package && !strings.HasPrefix(s.Path, retired.Package+"/") {
		return nil
	}
	for _, name := range declared(s.Go) {
		for _, word := range camelWords(name.Name) {
			if slices.Contains(retired.Words, word) && !name.IsExported() {
				broken = append(broken, fmt.Sprintf("%s: %s has the word %q, which had several meanings in %s: see its glossary",
					s.at(name.Pos()), name.Name, word, retired.Package))
			}
		}
	}
	return broken
}

// declared are the names of a file's functions, methods, types, fields, variables and constants.
func declared(f *ast.File) (names []*ast.Ident) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			names = append(names, n.Name)
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		}
		return true
	})
	return names
}

// camelWords splits a name where a capital letter begins.
func camelWords(name string) (words []string) {
	from := 0
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			words = append(words, strings.ToLower(name[from:i]))
			from = i
		}
	}
	return append(words, strings.ToLower(name[from:]))
}
