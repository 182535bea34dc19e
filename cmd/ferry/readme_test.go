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

var readmes = []string{"README.md", "README.zh-CN.md"}

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

// The commands of the README run as they are written, in the root of the repository. One that runs until Ctrl-C is
// stopped by FERRY_DURATION; of make it is checked that the target exists, as make test runs this test.
func TestREADMECommands(t *testing.T) {
	t.Parallel()
	all := commands(readme(t, "README.md"))
	if len(all) < 5 || !slices.Contains(all, "go run ./cmd/ferry dev") || !slices.Contains(all, "make test") {
		t.Fatalf("the README shows only these commands: %q", all)
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
		script += "exec " + c + "\nstdout .\n! stderr error\n"
	}
	file := filepath.Join(t.TempDir(), "readme.txtar")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: []string{file}, Setup: func(e *testscript.Env) error {
		e.Vars = append(e.Vars, "FERRY_DURATION=1s")
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

// A Go block that names a file is that file.
func TestREADMEPrograms(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)<!-- file: (\\S+) -->\n```go\n(.*?)```")
	for _, name := range readmes {
		found := block.FindAllStringSubmatch(readme(t, name), -1)
		if len(found) != 1 || strings.Count(readme(t, name), "```go") != 1 {
			t.Errorf("%s has %d Go blocks that name a file, want 1, and no other", name, len(found))
		}
		for _, m := range found {
			file, err := os.ReadFile(filepath.Join(repository, m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(file), m[2]); diff != "" {
				t.Errorf("the program in %s is not %s (-file +README):\n%s", name, m[1], diff)
			}
			_, body, _ := strings.Cut(m[2], "\n)\n\n")
			if n := strings.Count(body, "\n"); n > 30 {
				t.Errorf("the program in %s has %d lines below its imports, want 30 at most", name, n)
			}
		}
	}
}

// The two READMEs have the same parts: headings, commands, tables, links.
func TestREADMEsAgree(t *testing.T) {
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
	en, zh := readme(t, readmes[0]), readme(t, readmes[1])
	if diff := cmp.Diff(outline(en), outline(zh)); diff != "" {
		t.Errorf("the READMEs differ in shape (-en +zh):\n%s", diff)
	}
	if diff := cmp.Diff(links(en), links(zh)); diff != "" {
		t.Errorf("the READMEs differ in their links (-en +zh):\n%s", diff)
	}
}

// links returns where the links lead, each once, without those between the languages. A page in Chinese counts as the
// English one.
func links(text string) []string {
	var all []string
	for _, m := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(readmes, m[1]) {
			all = append(all, strings.Replace(m[1], ".zh-CN.md", ".md", 1))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestREADMELinksResolve(t *testing.T) {
	t.Parallel()
	for _, link := range append(links(readme(t, readmes[0])), readmes...) {
		if strings.HasPrefix(link, "https://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(repository, link)); err != nil {
			t.Errorf("the README links to what is not there: %v", err)
		}
	}
}
