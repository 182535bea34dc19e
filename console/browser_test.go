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

	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// everything has all tasks done on Redis, too, every screen drawn in every look, and what only a quiet machine can
// measure measured.
var everything = os.Getenv("FERRY_CONSOLE_ALL") != ""

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
	binary := build(t)
	redis, fragileRedis := redistest.Single(t, redistest.Options{}), redistest.Single(t, redistest.Options{AOF: "always"})
	broker := "disk://" + t.TempDir()
	if everything {
		broker = redis.URL()
	}
	main := newServer(t, binary, broker, configuration)
	main.configure()
	main.serve()
	main.callBack()
	main.fill()
	startWorker(t, main)
	if everything {
		main.fillMillion()
	}
	fragile := newServer(t, binary, fragileRedis.URL(), "environment: production")
	fragile.serve()
	fragile.fillBroken()
	streams := newServer(t, binary, strings.Replace(redis.URL(), "redis", "redisstream", 1)+"?prefix=streams", "")
	streams.serve()
	streams.api("PUT", "/topics/orders/groups/default", map[string]any{})
	specs := strings.Fields(os.Getenv("FERRY_CONSOLE_SPECS"))
	npm(t, []string{"FERRY_CONSOLE_URL=" + main.url, "FERRY_CONSOLE_PASSWORD=" + password, "FERRY_CONSOLE_SHOTS=" + shots,
		"FERRY_CONSOLE_CHROMIUM=" + strings.TrimSpace(string(chromium)), "FERRY_CONSOLE_STREAMS=" + streams.url,
		"FERRY_CONSOLE_OUTAGE=" + startOutage(t, fragile, fragileRedis)}, append([]string{"run", "e2e", "--"}, specs...)...)
}

// ferryServer is ferry serve on a broker, with users.
type ferryServer struct {
	*testing.T
	binary, broker, url, token string
	process                    *exec.Cmd

	config string   // file
	env    []string // with the secrets of the configuration
	vendor *wecomtest.Server
}

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "ferry")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary,
		"../cmd/ferry").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// newServer is a server that is not started yet. The configuration is a text.
func newServer(t *testing.T, binary, broker, config string) *ferryServer {
	t.Helper()
	s := &ferryServer{T: t, binary: binary, broker: broker, config: filepath.Join(t.TempDir(), "ferry.yaml")}
	if err := os.WriteFile(s.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ferry(password, "user", "set", "boss", "--role", "admin", "--password-stdin")
	s.ferry(password, "user", "set", "viewer", "--role", "viewer", "--password-stdin")
	s.token = strings.TrimSpace(s.ferry("", "token", "create", "test", "--scope", "publish,view,operate,admin,consume"))
	return s
}

// serve serves until the test ends.
func (s *ferryServer) serve() {
	s.Helper()
	s.start()
	s.Cleanup(s.stop)
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

// start serves, somewhere.
func (s *ferryServer) start() {
	s.Helper()
	s.url = ""
	s.process = exec.Command(s.binary, "serve", "--config", s.config, "--broker", s.broker, "--listen", "127.0.0.1:0")
	s.process.Env = s.env
	out, err := s.process.StdoutPipe()
	if err == nil {
		err = s.process.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	for lines := bufio.NewScanner(out); s.url == "" && lines.Scan(); {
		if _, url, found := strings.Cut(lines.Text(), "✓ running  "); found {
			s.url = url
		}
	}
	if s.url == "" {
		s.Fatal("the server does not say where it is")
	}
}

func (s *ferryServer) stop() {
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
}

// fill publishes what the screens show. Groups are made first, so that they receive it.
func (s *ferryServer) fill() {
	s.Helper()
	corpus, err := os.ReadFile("e2e/corpus.txt")
	if err != nil {
		s.Fatal(err)
	}
	for _, topic := range []string{"orders", "tasks", "waste", "hostile", "mails.eu", "removed",
		"cards.eu"} {
		s.api("PUT", "/topics/"+topic+"/groups/default", map[string]any{})
	}
	for i := range 30 {
		s.publish("orders", map[string]any{"body": `{"id": 1, "name": "世界"}`, "key": "user-" + string(rune('a'+i%26))})
	}
	inCBOR := []byte("\xa1\x64name\x66世界")
	s.publish("orders", map[string]any{"id": "in-cbor", "body_base64": inCBOR, "content_type": "application/cbor"})
	s.publish("orders", map[string]any{"id": "broken-cbor", "body_base64": inCBOR[:4], "content_type": "application/cbor"})
	inProtobuf := []byte("\x08\x07\x12\x06世界\x1a\x03\x08\x96\x01")
	s.publish("orders", map[string]any{"id": "in-protobuf", "body_base64": inProtobuf,
		"content_type": "application/protobuf"})
	s.publish("orders", map[string]any{"id": "traced", "body": `{"id": 7}`, "key": "customer-7",
		"headers": map[string]string{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}})
	s.publish("cards.eu", map[string]any{"id": "masked", "body": `{"card": "4111 1111 1111 1111", "amount": 5}`,
		"headers": map[string]string{"authorization": "Bearer secret"}})
	for range 3 {
		s.publish("waste", map[string]any{"body": "x"})
		s.publish("mails.eu", map[string]any{"body": "later", "delay": "1h"})
	}
	s.fillQueues()
	for line := range strings.Lines(string(corpus)) {
		line = strings.TrimSuffix(line, "\n")
		s.publish("hostile", map[string]any{"id": line, "body": line, "key": line,
			"headers": map[string]string{"note": line}})
	}
	s.fillLetters(strings.Split(strings.TrimSpace(string(corpus)), "\n"))
}

// fillQueues makes what the screens of groups, workers and delayed messages show.
func (s *ferryServer) fillQueues() {
	s.Helper()
	if !everything { // Redis keeps no settled messages
		s.api("PUT", "/topics/kept", map[string]any{"keep": "24h"})
	}
	for _, topic := range []string{"kept", "calls", "later", "attempts"} {
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
	s.publish("attempts", map[string]any{"id": "failed-twice", "body": "x"})
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
