package sdk_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// built is the directory of the ferry command, if a test has built it.
var built string

// binary builds the ferry command, once.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if built, err = os.MkdirTemp("", "ferry-sdk-"); err != nil {
		return "", err
	}
	path := filepath.Join(built, "ferry")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/ferry").CombinedOutput()
	if err != nil {
		return "", &exec.Error{Name: "go build: " + string(out), Err: err}
	}
	return path, nil
})

// server is a process of ours that serves a broker.
type server struct{ binary, broker, token string }

func (s *server) env() []string {
	return []string{"FERRY_BIN=" + s.binary, "FERRY_BROKER=" + s.broker, "FERRY_TOKEN=" + s.token}
}

// serve runs ferry serve in front of a broker on disk, until the test ends.
func serve(t *testing.T) *server {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	broker := "disk://" + t.TempDir() + "/broker"
	token := run(t, ".", nil, path, "token", "create", "sdk", "--broker", broker, "--scope",
		"publish,consume,view,operate,payload")
	s := &server{binary: path, token: strings.TrimSpace(token)}
	s.start(t, "serve", "--broker", broker, "--listen", "127.0.0.1:0")
	return s
}

// dev runs ferry dev without its demo, until the test ends.
func dev(t *testing.T) *server {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{binary: path}
	s.start(t, "dev", "--no-demo", "--dir", t.TempDir(), "--listen", "127.0.0.1:0")
	return s
}

// What the command says when it serves.
var (
	saysWhere = regexp.MustCompile(`(?:running|server)\s+http(://\S+)`)
	saysToken = regexp.MustCompile(`token\s+(ferry_\S+)`)
)

// start starts the command and returns when it has said where it serves, and with which token.
func (s *server) start(t *testing.T, args ...string) {
	t.Helper()
	c := exec.Command(s.binary, args...)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	c.Stderr = &logged
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		reading.Wait()
		if err := c.Wait(); err != nil {
			t.Errorf("the server ended with %v\n%s", err, logged.String())
		}
	})
	for lines := bufio.NewScanner(out); s.broker == "" || s.token == ""; {
		if !lines.Scan() {
			t.Fatal("the server did not say where it is")
		}
		if found := saysWhere.FindStringSubmatch(lines.Text()); found != nil {
			s.broker = "ferry" + found[1]
		}
		if found := saysToken.FindStringSubmatch(lines.Text()); found != nil {
			s.token = found[1]
		}
	}
	reading.Go(func() { _, _ = io.Copy(io.Discard, out) }) // it says more, and must not wait for a reader
}
