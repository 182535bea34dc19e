package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(redistest.Main(m))
}

// memoryBroker returns a broker in memory, which is closed at the end.
func memoryBroker(t *testing.T) *ferry.Broker {
	t.Helper()
	b, err := memory.Open(context.Background(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

// rig is a server that runs until the end of its test, or until stop.
type rig struct {
	*Server
	t    *testing.T
	http *http.Client
	stop func() error
	logs *lockedBuffer
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// start runs a server at a free port.
func start(t *testing.T, o Options) *rig {
	t.Helper()
	if o.Broker == nil {
		o.Broker = memoryBroker(t)
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	r := &rig{t: t, logs: new(lockedBuffer)}
	o.Logger = slog.New(slog.NewJSONHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.Server = s
	r.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-ran })
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return r
}

// answer is what came back.
type answer struct {
	*http.Response
	text string
}

// problem reads the problem that an answer must be.
func (a answer) problem(t *testing.T, status int, code string) Problem {
	t.Helper()
	var p Problem
	if err := json.Unmarshal([]byte(a.text), &p); err != nil ||
		a.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatalf("%s %q is no problem: %v", a.Status, a.text, err)
	}
	if a.StatusCode != status || p.Status != status || p.Code != code || p.Hint == "" || p.RequestID == "" ||
		p.RequestID != a.Header.Get("X-Request-Id") {
		t.Errorf("%+v is not the problem %d %s", p, status, code)
	}
	return p
}

// do makes a request; headers are names and values in turn.
func (r *rig) do(method, path, body string, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, r.URL()+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := r.http.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{res, string(text)}
}

// token makes one with all scopes.
func (r *rig) token() string {
	r.t.Helper()
	_, text, err := r.tokens.Create(context.Background(), auth.TokenRequest{Name: "test", Scopes: auth.Scopes()})
	if err != nil {
		r.t.Fatal(err)
	}
	return "Bearer " + text.Reveal()
}

// user makes a user.
func (r *rig) user(name, password string, role auth.Role) {
	r.t.Helper()
	user := auth.User{Name: name, Grants: []auth.Grant{{Role: role}}}
	if err := r.users.Put(context.Background(), user, auth.NewSecret(password)); err != nil {
		r.t.Fatal(err)
	}
}

// form logs in by the form, and returns the answer.
func (r *rig) form(values string) answer {
	r.t.Helper()
	return r.do("POST", "/login", values, "Content-Type", "application/x-www-form-urlencoded")
}

// onceCookie logs in by the one-time login, which costs no hash, and returns the cookie.
func (r *rig) onceCookie() string {
	r.t.Helper()
	_, code, _ := strings.Cut(r.LoginURL(), "once=")
	return r.form("once=" + code).cookie(r.t)
}

// cookie returns the cookie of an answer, as a header.
func (a answer) cookie(t *testing.T) string {
	t.Helper()
	for _, c := range a.Cookies() {
		if c.Value != "" {
			return c.Name + "=" + c.Value
		}
	}
	t.Fatalf("%s without a cookie: %s", a.Status, a.text)
	return ""
}

// whoami is a mount that says who asks.
var whoami = Mount{Path: "/api/", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, auth.From(r.Context()).String())
})}
