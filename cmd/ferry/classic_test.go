package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/guard"
	guardredis "github.com/ferrymq/ferry/guard/redis"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// TestClassicRoutes drives the classic routes of a server in a process of its own, on disk, Redis and Kafka.
func TestClassicRoutes(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	prefixed := func() string { return server.URL() + "?prefix=s" + rand.Text() }
	inRedis := func(*testscript.Env) (string, guard.Store, error) {
		prefix := "s" + rand.Text()
		s, err := guardredis.Open(context.Background(), guardredis.Options{URL: server.URL(), Prefix: prefix})
		return server.URL() + "?prefix=" + prefix, s, err
	}
	for name, on := range map[string]struct {
		broker func(t *testing.T, env *testscript.Env) (string, error)
		guards func(env *testscript.Env) (string, guard.Store, error)
	}{
		"disk": {
			func(_ *testing.T, env *testscript.Env) (string, error) {
				return emptyStore(filepath.Join(env.WorkDir, "data"))
			},
			func(env *testscript.Env) (string, guard.Store, error) {
				dir := filepath.Join(env.WorkDir, "guards")
				s, err := guard.OpenDir(dir, guard.DirOptions{})
				return "disk://" + dir, s, err
			},
		},
		"redis": {func(*testing.T, *testscript.Env) (string, error) { return prefixed(), nil }, inRedis},
		"kafka": {func(t *testing.T, _ *testscript.Env) (string, error) {
			return "kafka://" + kafkatest.Single(t).Brokers[0].Addr() + "?partitions=1", nil
		}, inRedis},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, testscript.Params{
				Dir: "testdata/script/classic",
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"does": scriptDoes, "dies": scriptDies,
					"serves": scriptServes,
					"asks":   scriptAsks, "awaits": scriptAwaits, "captures": scriptCaptures, "tails": scriptTails},
				Setup: func(env *testscript.Env) error {
					address, err := on.broker(t, env)
					if err != nil {
						return err
					}
					guards, store, err := on.guards(env)
					if err != nil {
						return err
					}
					env.Setenv("FERRY_BROKER", address)
					env.Setenv("FERRY_STORE", guards)
					return misbehave(store)
				},
				RequireUniqueNames: true,
			})
		})
	}
}

// scriptServes starts a server on the broker of the script, and makes a token for everything.
func scriptServes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: serves")
	}
	token, err := makeToken(ts.Getenv("FERRY_BROKER"))
	ts.Check(err)
	bin, _, _ := strings.Cut(ts.Getenv("PATH"), string(filepath.ListSeparator)) // where testscript puts our commands
	c := exec.Command(filepath.Join(bin, "ferry"), "serve", "--listen", "127.0.0.1:0")
	c.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"), "FERRY_BROKER="+ts.Getenv("FERRY_BROKER"),
		"FERRY_STORE="+ts.Getenv("FERRY_STORE"))
	stdout, err := c.StdoutPipe()
	ts.Check(err)
	ts.Check(c.Start())
	ts.Defer(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if address := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text()); address != "" {
			ts.Setenv("SERVER", address)
			ts.Setenv("TOKEN", token)
			return
		}
	}
	ts.Fatalf("the server does not run")
}

// makeToken makes a token for everything on a broker.
func makeToken(url string) (string, error) {
	b, err := open.URL(context.Background(), url)
	if err != nil {
		return "", err
	}
	_, secret, err := auth.NewTokens(b).Create(context.Background(),
		auth.TokenRequest{Name: "test", Scopes: auth.Scopes()})
	return secret.Reveal(), errors.Join(err, b.Close(context.Background()))
}

// scriptAsks sends a request, whose answer must have a status: asks 200 GET /admin/dlq/stats, asks 204 POST /path {}
func scriptAsks(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: asks status method path [body]")
	}
	status, err := strconv.Atoi(args[0])
	ts.Check(err)
	got, text := request(ts, args[1], args[2], strings.Join(args[3:], ""))
	_, err = io.WriteString(ts.Stdout(), text)
	ts.Check(err)
	if got != status {
		ts.Fatalf("it answered %d: %s", got, text)
	}
}

// scriptAwaits asks until the answer matches: awaits regexp /path
func scriptAwaits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: awaits regexp path")
	}
	wanted := regexp.MustCompile(args[0])
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, text := request(ts, http.MethodGet, args[1], "")
		if wanted.MatchString(text) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("it still answers %s", text)
		}
	}
}

func request(ts *testscript.TestScript, method, path, body string) (status int, text string) {
	res := send(ts, method, path, body)
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	ts.Check(err)
	return res.StatusCode, string(data)
}

func send(ts *testscript.TestScript, method, path, body string) *http.Response {
	q, err := http.NewRequestWithContext(context.Background(), method, ts.Getenv("SERVER")+path, strings.NewReader(body))
	ts.Check(err)
	q.Header.Set("Authorization", "Bearer "+ts.Getenv("TOKEN"))
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	ts.Check(err)
	return res
}

// scriptTails watches a topic, publishes to it, and demands to see the message: tails topic body
func scriptTails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tails topic body")
	}
	path := "/api/v1/topics/" + args[0]
	live := send(ts, http.MethodGet, path+"/tail", "")
	defer func() { _ = live.Body.Close() }()
	if status, text := request(ts, http.MethodPost, path+"/messages", `{"body":"`+args[1]+`"}`); status != http.StatusOK {
		ts.Fatalf("publishing answered %d: %s", status, text)
	}
	for lines := bufio.NewScanner(live.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") && strings.Contains(lines.Text(), `"body":"`+args[1]+`"`) {
			return
		}
	}
	ts.Fatalf("the tail of %s ended without the message", args[0])
}

// scriptCaptures makes a variable of what a group of a regexp matches in the last output: captures ID "id":"([^"]+)"
func scriptCaptures(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: captures NAME regexp")
	}
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("there is no %s in %s", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], found[1])
}
