package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/bench/report"
)

func TestWrongFlagsSayWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "-pkg is missing"},
		{[]string{"-pkg", "./x", "extra"}, "there are only flags"},
		{[]string{"-pkg", "./x", "-count", "0"}, "use 6 or more"},
		{[]string{"-nonsense"}, "not defined"},
	} {
		if _, err := parse(tt.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: got %v, want %q", tt.args, err, tt.want)
		}
	}
}

const module = "module example.com/m\n\ngo 1.26\n"

func benchmark(sum string) string {
	return "package m\n\nimport \"testing\"\n\nvar sink int\n\nfunc BenchmarkSum(b *testing.B) {\n\tfor b.Loop() " +
		"{\n\t\tsink += " + sum + "\n\t}\n}\n"
}

// repository makes a repository with one commit, and a change to it in the working tree.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write("go.mod", module)
	write("m_test.go", benchmark("1"))
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "one")
	write("m_test.go", benchmark("2"))
	return dir
}

func TestCompareTwoRevisions(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	var out bytes.Buffer
	kept := filepath.Join(t.TempDir(), report.CompareDir, "here.txt")
	err := compare(context.Background(), []string{"-repo", dir, "-pkg", ".", "-old", "HEAD", "-new", ".", "-count", "2",
		"-benchtime", "10x", "-out", kept}, &out)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	all, err := report.Comparisons(filepath.Dir(kept))
	if err != nil || len(all) != 1 || !strings.HasSuffix(all[0].Old, ")") ||
		!strings.HasSuffix(all[0].New, "not committed") || !strings.Contains(all[0].Text, "Sum") {
		t.Errorf("kept %+v, %v; want both revisions and what benchstat said", all, err)
	}
	for _, want := range []string{"Sum", "old", "new", "sec/op", "allocs/op"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	err = compare(context.Background(), []string{"-repo", dir, "-pkg", ".", "-old", "nowhere"}, &out)
	if err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("an unknown revision: got %v", err)
	}
	err = compare(context.Background(), []string{"-repo", dir, "-pkg", ".", "-new", "HEAD", "-bench", "Nothing", "-count",
		"1"}, &out)
	if err == nil || !strings.Contains(err.Error(), `no benchmark that matches "Nothing"`) {
		t.Errorf("a pattern without benchmarks: got %v", err)
	}
}
