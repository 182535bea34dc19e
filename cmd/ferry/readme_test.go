package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

const repository = "../.."

func readme(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commands returns the lines after "$ " in the console blocks that are marked with <!-- test -->, without comments.
func commands(text string) []string {
	block := regexp.MustCompile("(?s)<!-- test -->\n```console\n(.*?)```")
	var all []string
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(m[1]) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				command, _, _ = strings.Cut(command, " #")
				all = append(all, strings.TrimSpace(command))
			}
		}
	}
	return all
}

// pages are documents whose commands and programs are true by test, in English and Chinese.
var pages = []string{"README.md", "docs/start.md"}

// chinese is the page in Chinese.
func chinese(page string) string { return strings.TrimSuffix(page, ".md") + ".zh-CN.md" }

// The commands of a page run as they are written, in the root of the repository. One that runs until Ctrl-C is
// stopped by FERRY_DURATION; of make it is checked that the target exists, as make test runs this test.
func TestPageCommands(t *testing.T) {
	t.Parallel()
	if all := commands(readme(t, "README.md")); !slices.Contains(all, "go run ./cmd/ferry dev") ||
		!slices.Contains(all, "make test") {
		t.Fatalf("the README shows only these commands: %q", all)
	}
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			runCommands(t, commands(readme(t, page)))
		})
	}
}

func runCommands(t *testing.T, all []string) {
	t.Helper()
	if len(all) < 5 {
		t.Fatalf("only these commands are shown: %q", all)
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	script := "cd " + root + "\n"
	for _, c := range all {
		if target, ok := strings.CutPrefix(c, "make "); ok {
			script += "grep '^" + target + ":' Makefile\n"
			continue
		}
		script += "exec " + strings.ReplaceAll(c, "disk://./", "disk://$WORK/") + "\nstdout .\n! stderr ^error\n"
	}
	file := filepath.Join(t.TempDir(), "page.txtar")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{file}, Setup: func(e *testscript.Env) error {
		e.Vars = append(e.Vars, "FERRY_DURATION=1s", "FERRY_DIR="+filepath.Join(e.WorkDir, "dev"))
		for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOTOOLCHAIN"} {
			value, err := exec.Command("go", "env", name).Output()
			if err != nil {
				return err
			}
			e.Vars = append(e.Vars, name+"="+strings.TrimSpace(string(value)))
		}
		return nil
	}})
}

// A Go block that names a file is that file, and there is no other Go block.
func TestPagePrograms(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```go\n(.*?)```")
	for _, page := range pages {
		for _, name := range []string{page, chinese(page)} {
			found := block.FindAllStringSubmatch(readme(t, name), -1)
			if len(found) == 0 || strings.Count(readme(t, name), "```go") != len(found) {
				t.Errorf("%s has %d Go blocks that name a file, and others", name, len(found))
			}
			for _, m := range found {
				file, err := os.ReadFile(filepath.Join(repository, m[1]))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(file), m[2]); diff != "" {
					t.Errorf("the program in %s is not %s (-file +page):\n%s", name, m[1], diff)
				}
				_, body, _ := strings.Cut(m[2], "\n)\n\n")
				if n := strings.Count(body, "\n"); n > 40 {
					t.Errorf("%s in %s has %d lines below its imports, want 40 at most", m[1], name, n)
				}
			}
		}
	}
}

// A page has the same parts in both languages: headings, commands, tables, links.
func TestPagesAgree(t *testing.T) {
	t.Parallel()
	outline := func(text string) (parts []string) {
		code := false
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "```") {
				code = !code
				parts = append(parts, "block "+strings.TrimSpace(line))
			}
			if heading := regexp.MustCompile(`^#+ `).FindString(line); heading != "" && !code {
				parts = append(parts, heading)
			}
			if strings.HasPrefix(line, "|") && !code {
				parts = append(parts, "table row")
			}
		}
		return append(parts, commands(text)...)
	}
	for _, page := range slices.Concat([]string{"docs/concepts.md"}, pages, howtos(t)) {
		en, zh := readme(t, page), readme(t, chinese(page))
		if diff := cmp.Diff(outline(en), outline(zh)); diff != "" {
			t.Errorf("%s differs in shape (-en +zh):\n%s", page, diff)
		}
		if diff := cmp.Diff(links(en), links(zh)); diff != "" {
			t.Errorf("%s differs in its links (-en +zh):\n%s", page, diff)
		}
	}
}

// links returns where the links lead, each once, without those between the languages. A page or picture in Chinese
// counts as the English one.
func links(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`\[([^\]]*)\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		if m[1] != "中文" && m[1] != "English" {
			all = append(all, strings.Replace(m[2], ".zh-CN.", ".", 1))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Links to files lead somewhere, in every page there is.
func TestLinksResolve(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range howtos(t) {
		files = append(files, filepath.Join(repository, page), filepath.Join(repository, chinese(page)))
	}
	files = append(files, filepath.Join(repository, "README.md"), filepath.Join(repository, "README.zh-CN.md"),
		filepath.Join(repository, "CONTRIBUTING.md"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		prose := regexp.MustCompile("(?s)\n```.*?\n```").ReplaceAllString(string(text), "")
		for _, m := range regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`).FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to what is not there: %v", filepath.Base(file), err)
			}
		}
	}
}
