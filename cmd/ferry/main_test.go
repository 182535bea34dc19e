package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"ferry": main, "stuck": stuck})
}

// stuck is a command that stops at a signal, but never gets to the end of it.
func stuck() {
	ctx, stop := interruptible(context.Background())
	defer stop()
	fmt.Println("✓ running")
	<-ctx.Done()
	fmt.Println("stopping")
	<-time.After(time.Hour)
}

// leakChecked fails the tests if a goroutine outlives them.
type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	slog.SetDefault(quiet)
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool,
			[]string){"exits": exits, "interrupted": interrupted, "killed": killed, "slain": slain, "spoil": spoil},
		RequireUniqueNames: true,
	})
}

// exits runs a command that must end with one exit code: exits 2 ferry bogus
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// interrupted runs a command, sends it a signal once it says that it is running, and writes its output to the file
// "out": interrupted INT ferry dev
func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM}
	if neg || len(args) < 2 || signals[args[0]] == nil {
		ts.Fatalf("usage: interrupted INT|TERM command [args...]")
	}
	c, stdout := start(ts, args[1:])
	var out strings.Builder
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		out.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "✓ running") {
			ts.Check(c.Process.Signal(signals[args[0]]))
		}
	}
	err := c.Wait()
	ts.Check(os.WriteFile(ts.MkAbs("out"), []byte(out.String()), 0o600))
	if err != nil {
		ts.Fatalf("%v\n%s", err, out.String())
	}
}

// killed runs a command that is stuck in its stop, and checks that a second signal ends it: killed stuck
func killed(ts *testscript.TestScript, neg bool, args []string) {
	c, stdout := start(ts, args)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		ts.Check(c.Process.Signal(syscall.SIGINT)) // at "running", and at "stopping"
	}
	var exit *exec.ExitError
	if err := c.Wait(); neg || !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		ts.Fatalf("it ended with %v, want the signal", err)
	}
}

// slain runs a command, and kills it with signal 9 once it prints a line that matches: slain regexp ferry dev
func slain(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: slain regexp command [args...]")
	}
	line, matched := regexp.MustCompile(args[0]), false
	c, stdout := start(ts, args[1:])
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if !matched && line.Match(lines.Bytes()) {
			matched = true
			ts.Check(c.Process.Kill())
		}
	}
	if err := c.Wait(); !matched {
		ts.Fatalf("it ended before it printed %s: %v", args[0], err)
	}
}

func start(ts *testscript.TestScript, args []string) (*exec.Cmd, io.Reader) {
	bin, _, _ := strings.Cut(ts.Getenv("PATH"), string(filepath.ListSeparator)) // where testscript puts our commands
	c := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	c.Env = []string{"PATH=" + ts.Getenv("PATH")}
	stdout, err := c.StdoutPipe()
	ts.Check(err)
	ts.Check(c.Start())
	return c, stdout
}
