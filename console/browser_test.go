package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry/wecom/wecomtest"
)

const password = "correct horse battery"

// TestBrowser walks through the console with a browser, on a server as it is shipped. Pictures of every screen are
// written to console/shots, or where FERRY_CONSOLE_SHOTS says.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes a while")
	}
	chromium, err := exec.CommandContext(t.Context(), "../scripts/chromium.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	shots := os.Getenv("FERRY_CONSOLE_SHOTS")
	if shots == "" {
		if shots, err = filepath.Abs("shots"); err != nil {
			t.Fatal(err)
		}
	}
	s := startServer(t)
	s.fill()
	startWorker(t, s)
	npm(t, []string{"FERRY_CONSOLE_URL=" + s.url, "FERRY_CONSOLE_PASSWORD=" + password, "FERRY_CONSOLE_SHOTS=" + shots,
		"FERRY_CONSOLE_CHROMIUM=" + strings.TrimSpace(string(chromium))}, "run", "e2e")
}

// ferryServer is ferry serve on a disk, with users.
type ferryServer struct {
	*testing.T
	binary, broker, url, token string

	config string   // file
	env    []string // with the secrets of the configuration
	vendor *wecomtest.Server
}

func startServer(t *testing.T) *ferryServer {
	t.Helper()
	s := &ferryServer{T: t, binary: filepath.Join(t.TempDir(), "ferry"), broker: "disk://" + t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", s.binary, "../cmd/ferry").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.ferry(password, "user", "set", "boss", "--role", "admin", "--password-stdin")
	s.ferry(password, "user", "set", "viewer", "--role", "viewer", "--password-stdin")
	s.token = strings.TrimSpace(s.ferry("", "token", "create", "test", "--scope", "publish,view,operate,admin,consume"))
	s.configure(t)
	s.run()
	s.callBack()
	return s
}

// ferry runs a command on the broker, before it is served.
func (s *ferryServer) ferry(input string, args ...string) string {
	s.Helper()
	c := exec.CommandContext(s.Context(), s.binary, append(args, "--broker", s.broker)...)
	c.Stdin = strings.NewReader(input)
	var problem bytes.Buffer
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		s.Fatalf("ferry %v: %v\n%s", args, err, &problem)
	}
	return string(out)
}

// run serves until the test ends.
func (s *ferryServer) run() {
	s.Helper()
	c := exec.Command(s.binary, "serve", "--broker", s.broker, "--listen", "127.0.0.1:0", "--config", s.config)
	c.Env = s.env
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	for lines := bufio.NewScanner(out); s.url == "" && lines.Scan(); {
		if _, url, found := strings.Cut(lines.Text(), "✓ running  "); found {
			s.url = url
		}
	}
	if s.url == "" {
		s.Fatal("the server does not say where it is")
	}
}

// fill publishes what the screens show. Groups are made first, so that they receive it.
func (s *ferryServer) fill() {
	s.Helper()
	corpus, err := os.ReadFile("e2e/corpus.txt")
	if err != nil {
		s.Fatal(err)
	}
	for _, topic := range []string{"orders", "tasks", "waste", "hostile", "mails.eu"} {
		s.api("PUT", "/topics/"+topic+"/groups/default", map[string]any{})
	}
	for i := range 30 {
		s.publish("orders", map[string]any{"body": `{"id": 1, "name": "世界"}`, "key": "user-" + string(rune('a'+i%26))})
	}
	for range 3 {
		s.publish("waste", map[string]any{"body": "x"})
		s.publish("mails.eu", map[string]any{"body": "later", "delay": "1h"})
	}
	s.fillQueues()
	for line := range strings.Lines(string(corpus)) {
		line = strings.TrimSuffix(line, "\n")
		s.publish("hostile", map[string]any{"id": line, "body": line, "key": line, "headers": map[string]string{"note": line}})
	}
	s.fillLetters(strings.Split(strings.TrimSpace(string(corpus)), "\n"))
}

// fillQueues makes what the screens of groups, workers and delayed messages show.
func (s *ferryServer) fillQueues() {
	s.Helper()
	s.api("PUT", "/topics/kept", map[string]any{"keep": "24h"})
	for _, topic := range []string{"kept", "calls", "later"} {
		s.api("PUT", "/topics/"+topic+"/groups/default", map[string]any{})
	}
	for range 4 {
		s.publish("kept", map[string]any{"body": "x"})
	}
	for i := range 6 {
		delay := time.Duration(10*i+20) * time.Minute
		s.publish("later", map[string]any{"body": "x", "key": "later-" + strconv.Itoa(i), "delay": delay.String()})
	}
	s.publish("calls", map[string]any{"body": "x", "key": "slow"})
	s.api("PUT", "/schedules/daily-report",
		map[string]any{"spec": "0 3 * * *", "topic": "tasks", "message": map[string]any{"body": "{}"}})
}

func (s *ferryServer) publish(topic string, message map[string]any) {
	s.Helper()
	s.api("POST", "/topics/"+topic+"/messages", message)
}

// api asks the admin API.
func (s *ferryServer) api(method, path string, body any) {
	s.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+"/api/v1"+path, bytes.NewReader(data))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	r.Close = true // no connection is left when the test ends
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusBadRequest {
		var problem bytes.Buffer
		_, _ = problem.ReadFrom(answer.Body)
		s.Fatalf("%s %s: %s %s", method, path, answer.Status, &problem)
	}
}
