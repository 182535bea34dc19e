// Command compare runs the Go benchmarks of two git revisions in turn and prints what benchstat says about them.
//
//	go run ./cmd/compare -old main -new HEAD -pkg ./driver/memory -bench Publish
//
// The revision "." is the working tree as it is. Both are built first; then each runs once, in turn, as often as -count
// says, so that what disturbs the machine disturbs both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/ferrymq/ferry/bench/meter"
	"github.com/ferrymq/ferry/bench/report"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	err := compare(ctx, os.Args[1:], os.Stdout)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

type settings struct {
	old, new  string
	pkg       string
	bench     string
	benchtime string
	count     int
	repo      string
	out       string
}

func parse(args []string, out io.Writer) (settings, error) {
	var s settings
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&s.old, "old", "HEAD", "git revision to compare with")
	f.StringVar(&s.new, "new", ".", "git revision to judge; . is the working tree")
	f.StringVar(&s.pkg, "pkg", "", "package with the benchmarks, such as ./driver/memory (required)")
	f.StringVar(&s.bench, "bench", ".", "which benchmarks, as go test -bench")
	f.StringVar(&s.benchtime, "benchtime", "300ms", "how long each runs, as go test -benchtime")
	f.IntVar(&s.count, "count", 10, "how often each revision runs; benchstat wants 6 at least")
	f.StringVar(&s.repo, "repo", "..", "directory of the repository")
	f.StringVar(&s.out, "out", "", "write a file for the page of benchmarks, too: results/"+report.CompareDir+
		"/PACKAGE.txt")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	switch {
	case f.NArg() > 0:
		return s, fmt.Errorf("unexpected argument %q; there are only flags: -old, -new, -pkg, -bench, -benchtime, -count, "+
			"-repo, -out", f.Arg(0))
	case s.pkg == "":
		return s, errors.New("-pkg is missing: name one package with benchmarks, ./driver/memory for example")
	case s.count < 1:
		return s, fmt.Errorf("-count %d is too small: use 6 or more", s.count)
	}
	return s, nil
}

func compare(ctx context.Context, args []string, out io.Writer) (err error) {
	s, err := parse(args, out)
	if err != nil {
		return err
	}
	say := log.New(out, "", 0)
	dir, err := os.MkdirTemp("", "bench-compare-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sides := []*side{{name: "old", revision: s.old}, {name: "new", revision: s.new}}
	for _, x := range sides {
		if err := x.build(ctx, s, dir); err != nil {
			return fmt.Errorf("revision %s: %w", x.revision, err)
		}
	}
	for n := range s.count {
		say.Printf("run %d of %d", n+1, s.count)
		for i := range sides { // old new, new old, ...
			if err := sides[(i+n)%len(sides)].run(ctx, s); err != nil {
				return err
			}
		}
	}
	files, err := write(sides, dir)
	if err != nil {
		return err
	}
	stat := exec.CommandContext(ctx, "go", append([]string{"tool", "benchstat"}, files...)...)
	var said strings.Builder
	stat.Stdout, stat.Stderr = &said, out
	err = stat.Run()
	say.Print(said.String())
	if err != nil || s.out == "" {
		return err
	}
	return keep(ctx, s, said.String())
}

// keep writes the file of a comparison, with what it is of.
func keep(ctx context.Context, s settings, said string) error {
	m := meter.ThisMachine()
	c := report.Comparison{Package: s.pkg, Bench: s.bench, Text: said,
		Machine: fmt.Sprintf("%s, %d cores, Linux %s, %s", m.CPU, m.Cores, m.Kernel, m.Go),
		Runs:    fmt.Sprintf("%d runs of %s of each in turn", s.count, s.benchtime)}
	var err1, err2 error
	c.Old, err1 = dated(ctx, s.repo, s.old)
	c.New, err2 = dated(ctx, s.repo, s.new)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	hash := func(dated string) string { return strings.Fields(dated)[0] } // what HEAD is changes
	c.Command = fmt.Sprintf("make bench-compare OLD=%s NEW=%s PKG=%s BENCH='%s' COUNT=%d", hash(c.Old), hash(c.New), s.pkg,
		s.bench, s.count)
	if err := os.MkdirAll(filepath.Dir(s.out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.out, []byte(c.String()), 0o644)
}

// dated is the commit of a revision with its date.
func dated(ctx context.Context, repo, revision string) (string, error) {
	tree := ""
	if revision == "." {
		revision, tree = "HEAD", " and what is not committed"
	}
	cmd := exec.CommandContext(ctx, "git", "log", "-1", "--abbrev=8", "--format=%h (%cs)", revision, "--")
	cmd.Dir = repo
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)) + tree, err
}

// side is one of the two revisions.
type side struct {
	name, revision string
	binary, dir    string // the test binary, and the directory of its package
	results        strings.Builder
}

// build compiles the benchmarks of a revision, in a work tree of its own that is gone afterwards but for the binary and
// what benchmarks may read beside it.
func (x *side) build(ctx context.Context, s settings, dir string) error {
	repo, err := filepath.Abs(s.repo)
	if err != nil {
		return err
	}
	tree := repo
	if x.revision != "." {
		tree = filepath.Join(dir, x.name)
		// An archive, not a git worktree: nothing is left in the repository when this is interrupted.
		if err := unpack(ctx, repo, x.revision, tree); err != nil {
			return err
		}
	}
	x.binary, x.dir = filepath.Join(dir, x.name+".test"), filepath.Join(tree, s.pkg)
	if _, err := os.Stat(x.dir); err != nil {
		return fmt.Errorf("it has no package %s", s.pkg)
	}
	return command(ctx, tree, "go", "test", "-c", "-o", x.binary, s.pkg)
}

func unpack(ctx context.Context, repo, revision, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	archive := to + ".tar"
	if err := command(ctx, repo, "git", "archive", "-o", archive, revision); err != nil {
		return err
	}
	return command(ctx, to, "tar", "-xf", archive)
}

func (x *side) run(ctx context.Context, s settings) error {
	cmd := exec.CommandContext(ctx, x.binary, "-test.run", "^$", "-test.bench", s.bench, "-test.benchtime", s.benchtime,
		"-test.benchmem")
	cmd.Dir = x.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the benchmarks of %s failed: %w\n%s", x.revision, err, out)
	}
	if !strings.Contains(string(out), "ns/op") {
		return fmt.Errorf("%s of %s has no benchmark that matches %q", s.pkg, x.revision, s.bench)
	}
	x.results.Write(out)
	return nil
}

// write puts the results into files named for benchstat's columns.
func write(sides []*side, dir string) ([]string, error) {
	var files []string
	for _, x := range sides {
		name := strings.Map(func(r rune) rune {
			if strings.ContainsRune("/\\: ", r) {
				return '_'
			}
			return r
		}, x.revision)
		if x.revision == "." {
			name = "working-tree"
		}
		path := filepath.Join(dir, x.name+"."+name+".txt")
		if err := os.WriteFile(path, []byte(x.results.String()), 0o644); err != nil {
			return nil, err
		}
		files = append(files, x.name+"="+path)
	}
	return files, nil
}

func command(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
