package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	adminapi "github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/client"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// served is a server in a process of its own.
type served struct {
	t   *testing.T
	cmd *exec.Cmd
	url string
	out string // what it printed until it ran
	log *os.File
}

// serve runs a command that serves, until the end of the test.
func serve(t *testing.T, env []string, args ...string) *served {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	s := &served{t: t, cmd: exec.Command("ferry", args...), log: log}
	s.cmd.Env, s.cmd.Dir, s.cmd.Stderr = append(os.Environ(), env...), t.TempDir(), log
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	lines := bufio.NewScanner(stdout)
	for !strings.Contains(s.out, "once=") && lines.Scan() {
		s.out += lines.Text() + "\n"
	}
	s.url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(s.out)
	if s.url == "" {
		t.Fatalf("it does not run:\n%s\n%s", s.out, s.logged())
	}
	if args[0] == "dev" && lines.Scan() { // the token
		s.out += lines.Text() + "\n"
	}
	return s
}

// kill ends the process at once, and waits for it.
func (s *served) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = s.log.Close()
}

func (s *served) logged() string {
	text, _ := os.ReadFile(s.log.Name())
	return string(text)
}

// awaitLog returns when the process has logged a text.
func (s *served) awaitLog(text string) {
	s.t.Helper()
	for begin := time.Now(); !strings.Contains(s.logged(), text); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			s.t.Fatalf("it did not log %q:\n%s", text, s.logged())
		}
	}
}

// get returns the status of a path, and its text.
func (s *served) get(c *http.Client, path string) (int, string) {
	s.t.Helper()
	res, err := c.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// browser returns a client that keeps cookies, and no connections.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
}

// logIn logs in by the one-time login.
func (s *served) logIn(c *http.Client) {
	s.t.Helper()
	_, code, _ := strings.Cut(s.out, "once=")
	res, err := c.PostForm(s.url+"/login", url.Values{"once": {strings.Fields(code)[0]}})
	if err != nil {
		s.t.Fatal(err)
	}
	_ = res.Body.Close()
}

// TestSessionSurvivesAKill: a login at one server is good at another, after the first was killed.
func TestSessionSurvivesAKill(t *testing.T) {
	t.Parallel()
	redis := redistest.Single(t, redistest.Options{}).URL()
	env := []string{"FERRY_STORE=" + redis, "FERRY_BROKER=" + redis + "?prefix=" + strings.ToLower(rand.Text())}
	one, other := serve(t, env, "serve", "--listen", "127.0.0.1:0"), serve(t, env, "serve", "--listen", "127.0.0.1:0")
	c := browser(t)
	if status, _ := one.get(c, "/metrics"); status != http.StatusUnauthorized {
		t.Errorf("without a login: %d", status)
	}
	one.logIn(c)
	if status, text := one.get(c, "/metrics"); status != http.StatusOK || !strings.Contains(text, "ferry_") {
		t.Fatalf("%d %.200s", status, text)
	}
	if status, text := one.get(c, "/admin/ratelimit/blocked"); status != http.StatusOK { // 501 without a guard store
		t.Errorf("limits: %d %.200s", status, text)
	}
	one.kill()
	if status, _ := other.get(c, "/metrics"); status != http.StatusOK { // cookies are not for one port
		t.Errorf("the session did not survive: %d\n%s", status, other.logged())
	}
}

// TestOperationSurvivesAKill: the server that carries out an operation is killed in the middle, and the other one ends
// it.
func TestOperationSurvivesAKill(t *testing.T) {
	t.Parallel()
	const letters = 20 // at one a second: long enough to be in the middle
	redis := redistest.Single(t, redistest.Options{}).URL() + "?prefix=" + strings.ToLower(rand.Text())
	b, err := open.URL(t.Context(), redis)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	for range letters {
		if _, err := ferry.Publish(t.Context(), b, "orders", "x"); err != nil {
			t.Fatal(err)
		}
		dead := driver.Settlement{Outcome: driver.Dead, Failure: &driver.Failure{Reason: driver.ReasonTimeout, Error: "slow"}}
		if err := settleOne(b.Driver(), "orders", "default", dead); err != nil {
			t.Fatal(err)
		}
	}
	token, err := makeToken(redis)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"FERRY_BROKER=" + redis}
	one, other := serve(t, env, "serve", "--listen", "127.0.0.1:0"), serve(t, env, "serve", "--listen", "127.0.0.1:0")
	op, err := one.client(token).Remove(t.Context(),
		adminapi.RemoveMany{SelectLetters: adminapi.SelectLetters{Topic: "orders"}, Rate: 1})
	for err == nil && op.Done == 0 {
		op, err = one.client(token).Operation(t.Context(), op.ID)
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil || op.State != "running" {
		t.Fatalf("%+v, %v; want it in the middle", op, err)
	}
	if !one.runs(op) {
		one, other = other, one
	}
	one.kill()
	op, err = other.client(token).WaitOperation(t.Context(), op.ID)
	if err != nil || op.State != "done" || op.Takes < 2 || !other.runs(op) {
		t.Errorf("%+v, %v; want it done by the other", op, err)
	}
	stats, err := b.Driver().Stats(t.Context(), "orders")
	if err != nil || stats.Groups[0].Dead != 0 {
		t.Errorf("%d letters are left, %v", stats.Groups[0].Dead, err)
	}
}

// runs reports whether the server has carried out an operation last.
func (s *served) runs(op adminapi.Operation) bool {
	return strings.Contains(op.Worker, fmt.Sprintf("-%d-", s.cmd.Process.Pid))
}

// client returns a client of the admin API.
func (s *served) client(token string) *client.Client {
	s.t.Helper()
	c, err := client.New(client.Options{URL: s.url, Token: token,
		HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// TestHangup: the level of the log changes at SIGHUP; what is wrong changes nothing and is told.
func TestHangup(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ferry.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("broker: memory://\nlisten: 127.0.0.1:0\nlog: {level: error}\n")
	s := serve(t, nil, "serve", "--config", file)
	for _, step := range []struct{ text, says string }{
		{"log: {level: loud}\n", "the configuration was not reloaded"},
		{"log: {level: info}\n", "the configuration was reloaded"},
	} {
		write(step.text)
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.awaitLog(step.says)
	}
	s.get(browser(t), "/login")
	if !strings.Contains(s.logged(), "path=/login") {
		t.Errorf("requests are not logged:\n%s", s.logged())
	}
}

// inbox is a vendor of webhooks that keeps what arrived.
type inbox struct {
	url     string
	arrived chan string
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	i := &inbox{arrived: make(chan string, 100)}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		i.arrived <- string(body)
	}))
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// next is the next notice of a server.
func (i *inbox) next(s *served) string {
	s.t.Helper()
	select {
	case notice := <-i.arrived:
		return notice
	case <-time.After(time.Minute):
		s.t.Fatalf("no notice arrived\n%s", s.logged())
		return ""
	}
}

// TestHangupReloadsRules: channels and rules change at SIGHUP, and who was told of a rule that is gone is told so. A
// channel without its secret changes nothing.
func TestHangupReloadsRules(t *testing.T) {
	t.Parallel()
	vendor := newInbox(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	configure := func(rule, endpoint string) string {
		return write("ferry.yaml", fmt.Sprintf(`broker: memory://
listen: 127.0.0.1:0
notify:
  channels: {hook: {kind: webhook, unsigned: true, endpoints: [%[2]s], allow_private: [127.0.0.0/8, "::1/128"]}}
alerts:
  every: 1s
  rules: [{name: %[1]s, when: broker_up > 0, text: "{subject} is up"}]
  channels: {ops: [{channel: hook, to: %[2]s}]}
`, rule, endpoint))
	}
	s := serve(t, []string{"FERRY_NOTIFY_HOOK_OPS_URL=" + vendor.url,
		"FERRY_NOTIFY_HOOK_TEAM_URL_FILE=" + filepath.Join(dir, "team")}, "serve", "--config", configure("first", "ops"))
	want := func(title, text string) {
		t.Helper()
		if notice := vendor.next(s); !strings.Contains(notice, title) || !strings.Contains(notice, text) {
			t.Errorf("%s arrived, not %s", notice, title)
		}
	}
	hangup := func(says string) {
		t.Helper()
		if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		s.awaitLog(says)
	}
	want("[WARNING] first", "system is up")
	configure("second", "team")
	hangup("channels, rules and silences were not reloaded; they stay as they were") // there is no file of its address
	write("team", vendor.url)
	hangup("the configuration was reloaded")
	got := vendor.next(s) + vendor.next(s)
	for _, part := range []string{"[RESOLVED] first", "the rule was removed", "[WARNING] second"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in %s", part, got)
		}
	}
}

// TestServeTellsOfAlerts: what ferry.yaml says of channels and rules is enough for a notice to arrive.
func TestServeTellsOfAlerts(t *testing.T) {
	t.Parallel()
	vendor := newInbox(t)
	file := filepath.Join(t.TempDir(), "ferry.yaml")
	text := `broker: memory://
listen: 127.0.0.1:0
notify:
  channels: {hook: {kind: webhook, unsigned: true, endpoints: [ops], allow_private: [127.0.0.0/8, "::1/128"]}}
alerts:
  rules: [{name: it runs, when: broker_up > 0, text: "{subject} is up"}]
  channels: {ops: [{channel: hook, to: ops}]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ferry", "serve", "--config", file).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "FERRY_NOTIFY_HOOK_OPS_URL") {
		t.Errorf("without the address it says %v, %s", err, out)
	}
	s := serve(t, []string{"FERRY_NOTIFY_HOOK_OPS_URL=" + vendor.url}, "serve", "--config", file)
	if notice := vendor.next(s); !strings.Contains(notice, "[WARNING] it runs") ||
		!strings.Contains(notice, "system is up") {
		t.Error(notice)
	}
}

// TestServeSeesGuardsAndMembers: rules over breakers and spools fire in a server, for what processes report to the
// guard store of its broker and tell as members.
func TestServeSeesGuardsAndMembers(t *testing.T) {
	t.Parallel()
	vendor := newInbox(t)
	redis := redistest.Single(t, redistest.Options{}).URL()
	b, err := open.URL(t.Context(), redis)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	guards, err := open.Guards(t.Context(), redis)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = guards.Close(context.Background()) }()
	if _, err := guards.Report(t.Context(), "one",
		[]guard.BreakerStatus{{Name: "billing", State: guard.StateOpen}}); err != nil {
		t.Fatal(err)
	}
	member, err := cluster.Join(b, cluster.Options{Name: "one", Figures: func() map[string]float64 {
		return map[string]float64{"degraded_messages": 11}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = member.Run(ctx) })
	defer running.Wait()
	defer stop()

	file := filepath.Join(t.TempDir(), "ferry.yaml")
	text := `listen: 127.0.0.1:0
notify:
  channels: {hook: {kind: webhook, unsigned: true, endpoints: [ops], allow_private: [127.0.0.0/8, "::1/128"]}}
alerts:
  every: 1s
  builtin: true
  rules: [{name: spools, when: degraded_messages > 10}]
  channels: {ops: [{channel: hook, to: ops}]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, []string{"FERRY_BROKER=" + redis, "FERRY_NOTIFY_HOOK_OPS_URL=" + vendor.url}, "serve", "--config", file)
	missing := map[string]bool{"[CRITICAL] breaker open": true, "[WARNING] spools": true}
	for len(missing) > 0 {
		notice := vendor.next(s)
		for title := range missing {
			if strings.Contains(notice, title) {
				delete(missing, title)
			}
		}
	}
}

// TestDevServes: the other commands reach the broker of ferry dev, which is in a directory, through its server.
func TestDevServes(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, "dev", "--no-demo", "--listen", "127.0.0.1:0")
	token := regexp.MustCompile(`ferry_\w+`).FindString(s.out)
	ferry := func(args ...string) string {
		t.Helper()
		c := exec.Command("ferry", args...)
		c.Env = append(os.Environ(), "FERRY_BROKER=ferry"+strings.TrimPrefix(s.url, "http"), "FERRY_TOKEN="+token)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	ferry("pub", "orders", "hello")
	if out := ferry("topic", "ls"); !strings.Contains(out, "orders") {
		t.Error(out)
	}
	c := browser(t)
	s.logIn(c)
	for path, part := range map[string]string{"/openapi.json": "/api/v1/topics", "/v1/openapi.json": "/v1/settle"} {
		if status, text := s.get(browser(t), path); status != http.StatusOK || !strings.Contains(text, part) {
			t.Errorf("the document at %s: %d %.200s", path, status, text)
		}
	}
	if status, _ := s.get(browser(t), "/api/v1/topics"); status != http.StatusUnauthorized {
		t.Errorf("the admin API without a login: %d", status)
	}
	if status, text := s.get(c, "/api/v1/topics/orders"); status != http.StatusOK ||
		!strings.Contains(text, `"ready":1`) {
		t.Errorf("the admin API: %d %s", status, text)
	}
	s.purge(token)
	if status, text := s.get(c, "/healthz"); status != http.StatusOK || !strings.Contains(text, "queue_size") {
		t.Errorf("%d %s", status, text)
	}
}

// TestServeUndoesFilters: a server with the keys gives a client in another language what a Go program encrypted.
func TestServeUndoesFilters(t *testing.T) {
	t.Parallel()
	keys := "FERRY_ENCRYPTION_KEYS=1:" + base64.StdEncoding.EncodeToString([]byte("01234567890123456789012345678901"))
	s := serve(t, []string{keys}, "dev", "--no-demo", "--listen", "127.0.0.1:0")
	token := regexp.MustCompile(`ferry_\w+`).FindString(s.out)
	c := exec.Command("ferry", "pub", "orders", "hello")
	c.Env = append(os.Environ(), keys, "FERRY_BROKER=ferry"+strings.TrimPrefix(s.url, "http"), "FERRY_TOKEN="+token)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/topics/orders/groups/default/receive",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := browser(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), `"body":"hello"`) {
		t.Errorf("received %d %s, %v", res.StatusCode, text, err)
	}
}

// purge has the server delete what waits, which it does itself: an operation needs somebody who carries it out.
func (s *served) purge(token string) {
	s.t.Helper()
	api := s.client(token)
	op, err := api.Purge(s.t.Context(), "orders", adminapi.Purge{})
	if err == nil {
		op, err = api.WaitOperation(s.t.Context(), op.ID)
	}
	if err != nil || op.Done != 1 {
		s.t.Errorf("purged %+v, %v", op, err)
	}
}
