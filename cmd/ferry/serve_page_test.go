package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/ferrymq/ferry/internal/redistest"
)

// TestServerPage runs the commands of docs/server.md one after the other as they are written there, but for addresses:
// on a Redis of the test, with a server of the test in place of the one that the page reaches by name. Those that serve
// are stopped once they run.
func TestServerPage(t *testing.T) {
	t.Parallel()
	redis := redistest.Single(t, redistest.Options{}).URL()
	token, err := makeToken(redis)
	if err != nil {
		t.Fatal(err)
	}
	other := serve(t, []string{"FERRY_BROKER=" + redis}, "serve", "--listen", "127.0.0.1:0")
	page := strings.NewReplacer("redis://localhost:6379", redis, "ferry_...", token, "ferrys://ferry.example.com",
		"ferry"+strings.TrimPrefix(other.url, "http"),
		"0.0.0.0:7070", "0.0.0.0:0").Replace(readme(t, "docs/server.md"))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "password.txt"), []byte("correct horse battery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(block[1]) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if !ok {
				continue
			}
			ran++
			c := exec.Command("sh", "-c", "exec env "+command)
			c.Dir, c.Env = dir, append(os.Environ(), "HOME="+dir)
			// who has a name needs no variable
			if !strings.Contains(command, "ferry ctx") && !strings.Contains(command, "ferry topic") {
				c.Env = append(c.Env, "FERRY_BROKER="+redis, "FERRY_LISTEN=127.0.0.1:0")
			}
			runShown(t, c, strings.Contains(command, "ferry serve"))
		}
	}
	if ran < 6 {
		t.Errorf("the page shows only %d commands", ran)
	}
}

// runShown runs a command of a page. One that serves has to run, and to stop when it is told to.
func runShown(t *testing.T, c *exec.Cmd, serves bool) {
	t.Helper()
	var said strings.Builder
	c.Stderr = &said
	stdout, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	running := false
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if serves && strings.Contains(lines.Text(), "✓ running") {
			running = true
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	if err := c.Wait(); err != nil || running != serves {
		t.Errorf("%s: %v, running %v\n%s", c.Args[2], err, running, said.String())
	}
}
