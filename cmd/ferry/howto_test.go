package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// howtos returns the pages of docs/howto in English.
func howtos(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(repository, "docs/howto/*.md"))
	if err != nil || len(all) < 10 {
		t.Fatalf("%q %v", all, err)
	}
	var pages []string
	for _, path := range all {
		if !strings.HasSuffix(path, ".zh-CN.md") {
			pages = append(pages, "docs/howto/"+filepath.Base(path))
		}
	}
	return pages
}

// snippetBlock is a Go block of a page: where it comes from, and its code.
var snippetBlock = regexp.MustCompile("(?s)<!-- snippet: (\\S+)#(\\S+) -->\n```go\n(.*?)```")

// The code of the how-to pages is that of tests: go test ./cmd/ferry -run TestHowto -update copies it.
func TestHowtoSnippets(t *testing.T) {
	t.Parallel()
	for _, page := range howtos(t) {
		for _, name := range []string{page, chinese(page)} {
			text := readme(t, name)
			if strings.Count(text, "```go") != len(snippetBlock.FindAllString(text, -1)) {
				t.Errorf("%s has Go code that no test has", name)
			}
			want := snippetBlock.ReplaceAllStringFunc(text, func(block string) string {
				m := snippetBlock.FindStringSubmatch(block)
				code, err := snippet(readme(t, m[1]), m[2])
				if err != nil {
					t.Errorf("%s: %s#%s: %v", name, m[1], m[2], err)
				}
				return fmt.Sprintf("<!-- snippet: %s#%s -->\n```go\n%s```", m[1], m[2], code)
			})
			if *update {
				if err := os.WriteFile(filepath.Join(repository, name), []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(want, text); diff != "" {
				t.Errorf("%s is not what its tests are; run make generate (-tests +page):\n%s", name, diff)
			}
		}
	}
}

// snippet returns the lines between the marks of this name, without their common indent.
func snippet(file, name string) (string, error) {
	_, rest, ok := strings.Cut(file, "//snippet:begin "+name+"\n")
	code, _, ended := strings.Cut(rest, "//snippet:end\n")
	if !ok || !ended {
		return "", fmt.Errorf("it has no such marks")
	}
	lines := strings.SplitAfter(strings.Trim(code, "\n\t")+"\n", "\n")
	indent := code[:len(code)-len(strings.TrimLeft(code, "\t\n"))]
	indent = indent[strings.LastIndex(indent, "\n")+1:]
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], indent)
	}
	return strings.Join(lines, ""), nil
}

// Commands that a page names exist, with their flags.
func TestHowtoCommands(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile("`ferry ([^`]+)`")
	for _, page := range howtos(t) {
		for _, name := range []string{page, chinese(page)} {
			for _, m := range command.FindAllStringSubmatch(readme(t, name), -1) {
				words := strings.Fields(m[1])
				c, _, err := newRoot(process{env: func(string) (string, bool) { return "", false }}).Find(words)
				if err != nil || !c.HasParent() {
					t.Errorf("%s names ferry %s: %v", name, m[1], err)
					continue
				}
				for _, w := range words {
					if flag, ok := strings.CutPrefix(w, "--"); ok && c.Flags().Lookup(flag) == nil &&
						c.InheritedFlags().Lookup(flag) == nil {
						t.Errorf("%s names ferry %s, which has no flag --%s", name, m[1], flag)
					}
				}
			}
		}
	}
}
