package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
)

// TestWithoutCredentials is everything that answers without them. Whatever else there is says 401, also what is not
// there.
func TestWithoutCredentials(t *testing.T) {
	t.Parallel()
	public := Mount{Path: "/static/", Public: true, Handler: http.HandlerFunc(livez)}
	r := start(t, Options{Mounts: []Mount{whoami, public}})
	for path, want := range map[string]int{
		"GET /livez": 200, "GET /readyz": 200, "GET /healthz": 200, "GET /login": 200, "POST /logout": 204,
		"GET /static/a": 200,
		"POST /login":   400, // without a body
		"GET /":         401, "GET /api/": 401, "POST /api/x": 401, "GET /nothing": 401, "DELETE /login": 401,
		"GET /logout": 401,
		"GET /api":    401, "GET /static": 401, "GET /livez/x": 401, "PUT /static": 401, "OPTIONS /api/": 401,
		"TRACE /api/":       401,
		"GET /debug/pprof/": 401, "GET /debug/vars": 401, "GET /metrics": 401,
	} {
		method, path, _ := strings.Cut(path, " ")
		a := r.do(method, path, "")
		if path == "/api" || path == "/static" { // a redirect to what answers 401, or to what is public
			if a.StatusCode/100 != 3 {
				t.Errorf("%s %s: %s", method, path, a.Status)
			}
			continue
		}
		if a.StatusCode != want {
			t.Errorf("%s %s: %s, not %d", method, path, a.Status, want)
		}
		if want == 401 {
			a.problem(t, 401, "unauthenticated")
		}
	}
}

// TestTokens: what is not a good token is nobody, and every wrong one gets the same answer.
func TestTokens(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}})
	good := r.token()
	if a := r.do("GET", "/api/", "", "Authorization", good); a.StatusCode != 200 || a.text != "token test" {
		t.Fatalf("%s %s", a.Status, a.text)
	}
	if a := r.do("GET", "/nothing", "", "Authorization", good); a.StatusCode != 404 {
		a.problem(t, 404, "not_found")
	}
	detail := ""
	for _, wrong := range []string{good + "x", "Bearer ", "Bearer", "Basic YTpi",
		strings.TrimPrefix(good, "Bearer ") + "x", "bearer x"} {
		p := r.do("GET", "/api/", "", "Authorization", wrong).problem(t, 401, "unauthenticated")
		if detail != "" && p.Detail != detail {
			t.Errorf("%q is told apart: %s", wrong, p.Detail)
		}
		detail = p.Detail
	}
	ctx := context.Background()
	page, _ := r.tokens.List(ctx, "", 0)
	if err := r.tokens.Revoke(ctx, page.Tokens[0].ID); err != nil {
		t.Fatal(err)
	}
	r.known.tokens = nil // as it is a second later
	r.do("GET", "/api/", "", "Authorization", good).problem(t, 401, "unauthenticated")
}

// TestKnownTokens: what was good is good for a second, without a question to the broker; what was not is asked again.
func TestKnownTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var k known
		ctx, tokens := context.Background(), auth.NewTokens(memoryBroker(t))
		token, text, err := tokens.Create(ctx, auth.TokenRequest{Name: "a", Scopes: auth.Scopes()})
		if err != nil {
			t.Fatal(err)
		}
		check := func(want bool) {
			t.Helper()
			if who, err := k.check(ctx, tokens, text); (err == nil) != want || (who != nil) != want {
				t.Errorf("%v, %v", who, err)
			}
		}
		check(true)
		if err := tokens.Revoke(ctx, token.ID); err != nil {
			t.Fatal(err)
		}
		check(true)
		time.Sleep(knownFor)
		check(false)
		for i := range 2 * mostKnown {
			k.add(sha256.Sum256([]byte(fmt.Sprint(i))), knownToken{})
		}
		if len(k.tokens) > mostKnown {
			t.Errorf("%d tokens are remembered", len(k.tokens))
		}
	})
}

// TestScopeOfAMount: who lacks it is told so, and the list of actions has it.
func TestScopeOfAMount(t *testing.T) {
	t.Parallel()
	m := Mount{Path: "/metrics", Scope: auth.Metrics, Handler: whoami.Handler}
	r := start(t, Options{Mounts: []Mount{m}})
	ctx := context.Background()
	for scope, want := range map[auth.Scope]int{auth.Metrics: 200, auth.View: 403} {
		_, text, err := r.tokens.Create(ctx, auth.TokenRequest{Name: "a", Scopes: []auth.Scope{scope}})
		if err != nil {
			t.Fatal(err)
		}
		a := r.do("GET", "/metrics", "", "Authorization", "Bearer "+text.Reveal())
		if a.StatusCode != want {
			t.Errorf("%s: %s", scope, a.Status)
		}
		if want == 403 {
			a.problem(t, 403, "forbidden")
		}
	}
	p, err := r.actions.List(ctx, auth.ActionQuery{})
	if err != nil || len(p.Actions) != 1 || p.Actions[0].What != "/metrics" || p.Actions[0].Outcome != auth.Denied {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestExpiredToken: the broker lets it go, and the server has kept nothing of it.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}})
	ctx := context.Background()
	token, text, err := r.tokens.Create(ctx, auth.TokenRequest{Name: "short", Scopes: auth.Scopes(), TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.o.Broker.Driver().KV().Wait(ctx, driver.AuthBucket+".tokens", token.ID, 0); err != nil { // it is there
		t.Fatal(err)
	}
	values, _ := r.o.Broker.Driver().KV().Get(ctx, driver.AuthBucket+".tokens", token.ID)
	if values[0].Revision != 0 {
		// it is gone
		if _, err := r.o.Broker.Driver().KV().Wait(ctx, driver.AuthBucket+".tokens", token.ID,
			values[0].Revision); err != nil {
			t.Fatal(err)
		}
	}
	r.do("GET", "/api/", "", "Authorization", "Bearer "+text.Reveal()).problem(t, 401, "unauthenticated")
}

func TestPasswordLogin(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}})
	r.user("ann", "correct horse", auth.Operator)
	a := r.form("name=ann&password=correct+horse")
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/" {
		t.Fatalf("%s %s", a.Status, a.text)
	}
	c := a.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || len(c.Value) < 43 || c.Secure {
		t.Errorf("the cookie is %+v", c)
	}
	cookie := a.cookie(t)
	if a := r.do("GET", "/api/", "", "Cookie", cookie); a.text != "user ann" {
		t.Errorf("%s %s", a.Status, a.text)
	}
	again := r.do("POST", "/login", `{"name":"ann","password":"correct horse"}`, "Content-Type", "application/json",
		"Cookie", cookie)
	if again.StatusCode != http.StatusNoContent || again.cookie(t) == cookie {
		t.Errorf("the id of the session is not a new one: %s", again.Status)
	}
	r.do("GET", "/api/", "", "Cookie", cookie).problem(t, 401, "unauthenticated") // the one before has ended
	if a := r.do("POST", "/logout", "", "Cookie", again.cookie(t)); a.StatusCode != 204 || a.Cookies()[0].MaxAge >= 0 {
		t.Errorf("%s %v", a.Status, a.Cookies())
	}
	r.do("GET", "/api/", "", "Cookie", again.cookie(t)).problem(t, 401, "unauthenticated")
}

func TestWrongLogin(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.user("ann", "correct horse", auth.Operator)
	if a := r.form("name=ann&password=wrong+horse"); a.StatusCode != 401 || len(a.Cookies()) > 0 ||
		!strings.Contains(a.text, "role=\"alert\"") {
		t.Errorf("%s %s", a.Status, a.text)
	}
	json := []string{"Content-Type", "application/json"}
	r.do("POST", "/login", `{"name":"ann","password":"x"}`, json...).problem(t, 401, "unauthenticated")
	for _, body := range []string{"", "{", `{"name":1}`, `{"nam":"ann"}`, `[]`, strings.Repeat("[", 10_000),
		`"` + strings.Repeat("x", maxLogin) + `"`} {
		r.do("POST", "/login", body, json...).problem(t, 400, "invalid")
	}
	r.do("POST", "/login", "name=ann", "Content-Type", "text/plain").problem(t, 400, "invalid")
	r.do("POST", "/login", "name=%zz", "Content-Type", "application/x-www-form-urlencoded").problem(t, 400, "invalid")
	p, err := r.actions.List(context.Background(), auth.ActionQuery{})
	if err != nil || len(p.Actions) == 0 || p.Actions[0].What != "login" || p.Actions[0].Outcome != auth.Denied ||
		!strings.Contains(p.Actions[0].Detail, "as ann") {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestOneTimeLogin: to open the link shows a button, to press it logs in, once.
func TestOneTimeLogin(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}, Home: "/home"})
	path := strings.TrimPrefix(r.LoginURL(), r.URL())
	_, code, _ := strings.Cut(path, "once=")
	for range 2 {
		if a := r.do("GET", path, ""); a.StatusCode != 200 || !strings.Contains(a.text, `value="`+code+`"`) {
			t.Fatalf("%s %s", a.Status, a.text)
		}
	}
	if a := r.form("once=wrong"); a.StatusCode != 401 {
		t.Errorf("%s", a.Status)
	}
	a := r.form("once=" + code)
	if a.Header.Get("Location") != "/home" {
		t.Errorf("the login leads to %s", a.Header.Get("Location"))
	}
	if a := r.do("GET", "/api/", "", "Cookie", a.cookie(t)); a.text != "local terminal" {
		t.Errorf("%s %s", a.Status, a.text)
	}
	if a := r.form("once=" + code); a.StatusCode != 401 {
		t.Errorf("it is good twice: %s", a.Status)
	}
}

func TestOnceEnds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOnce(now)
	code := o.code.Reveal()
	if o.use(code, now.Add(onceFor+time.Second)) || o.use("", now) || (*once)(nil).use(code, now) ||
		!o.use(code, now) || o.use("", now) {
		t.Error("a one-time login is good too long, or not at all")
	}
}

// TestGuessingIsThrottled: whoever logs in wrongly again and again is told to wait, and costs no hash then.
func TestGuessingIsThrottled(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}})
	for ok := true; ok; { // what was tried before
		ok, _ = r.logins.allow("127.0.0.1", 1e-6, mostLogins)
	}
	a := r.form("once=wrong")
	if a.problem(t, 429, "too_many_requests"); a.Header.Get("Retry-After") == "" {
		t.Error("it is not said for how long")
	}
	if a := r.do("GET", "/api/", "", "Authorization", r.token()); a.StatusCode != 200 {
		t.Errorf("who has a good token is throttled with the others: %s", a.Status)
	}
}

// TestLoginsComeBack: an address that waited may try again, once.
func TestLoginsComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var th throttle
		for i := range 3 * mostLogins {
			if ok, wait := th.allow("a", loginsPerSecond, mostLogins); ok != (i < mostLogins) || !ok &&
				wait > 5*time.Second {
				t.Fatalf("try %d: %v, %v", i, ok, wait)
			}
		}
		time.Sleep(5 * time.Second)
		for _, want := range []bool{true, false} {
			if ok, _ := th.allow("a", loginsPerSecond, mostLogins); ok != want {
				t.Errorf("%v after a while", ok)
			}
		}
		if ok, _ := th.allow("b", loginsPerSecond, mostLogins); !ok {
			t.Error("another address waits too")
		}
	})
}

func TestRate(t *testing.T) {
	t.Parallel()
	// one of each, and then none for a while
	r := start(t, Options{Mounts: []Mount{whoami}, Limits: Limits{Rate: 1e-6}})
	token := r.token()
	who := &auth.Identity{Name: "test", Kind: auth.KindToken}
	for client, allowed := range map[string]int{who.String(): 1, "at 127.0.0.1": 1} {
		for i := range 3 {
			if ok, _ := r.busy.allow(client, 1e-6, 1); ok != (i < allowed) {
				t.Errorf("request %d of %s: %v", i, client, ok)
			}
		}
	}
	r.do("GET", "/api/", "", "Authorization", token).problem(t, 429, "too_many_requests")
	if err := r.Reload(Limits{Rate: 1e6}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the new rate counts from the request that first sees it, and two clients are counted
		r.do("GET", "/api/", "", "Authorization", token)
	}
	if a := r.do("GET", "/api/", "", "Authorization", token); a.StatusCode != 200 {
		t.Errorf("%s", a.Status)
	}
}

// TestAddressOfOthers: an address that others reach takes somebody who has to say who they are.
func TestAddressOfOthers(t *testing.T) {
	t.Parallel()
	b, ctx := memoryBroker(t), context.Background()
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:7070", "example.com:7070"} {
		if _, err := New(ctx, Options{Broker: b, Address: address}); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for address, want := range map[string]bool{"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true,
		"localhost:1": true, "10.0.0.1:1": false, ":1": false, "x": false} {
		if loopback(address) != want {
			t.Errorf("%s is taken for loopback: %v", address, !want)
		}
	}
	if _, _, err := auth.NewTokens(b).Create(ctx, auth.TokenRequest{Name: "a",
		Scopes: []auth.Scope{auth.View}}); err != nil {
		t.Fatal(err)
	}
	if r := start(t, Options{Broker: b, Address: "0.0.0.0:0"}); r.LoginURL() != "" ||
		!strings.Contains(r.logs.String(), "in clear") {
		t.Error("a server that others reach has a one-time login, or says nothing of TLS")
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	b, ctx := memoryBroker(t), context.Background()
	taken := start(t, Options{Broker: b})
	nothing := http.HandlerFunc(livez)
	for name, o := range map[string]Options{
		"no broker":    {},
		"no address":   {Broker: b, Address: "here"},
		"port in use":  {Broker: b, Address: strings.TrimPrefix(taken.URL(), "http://")},
		"a limit":      {Broker: b, Limits: Limits{Body: -1}},
		"a drain":      {Broker: b, Drain: -1},
		"half a key":   {Broker: b, Certificate: Certificate{File: "x"}},
		"no key":       {Broker: b, Certificate: Certificate{File: "/nowhere", Key: "/nowhere"}},
		"no path":      {Broker: b, Mounts: []Mount{{Handler: nothing}}},
		"no handler":   {Broker: b, Mounts: []Mount{{Path: "/"}}},
		"a path twice": {Broker: b, Mounts: []Mount{{Path: "/a", Handler: nothing}, {Path: "/a", Handler: nothing}}},
		"an own path":  {Broker: b, Mounts: []Mount{{Path: "/login", Handler: nothing}}},
		"a pattern":    {Broker: b, Mounts: []Mount{{Path: "/{x}", Handler: nothing}}},
		"a name":       {Broker: b, Address: "127.0.0.1:0", Name: "a b"},
	} {
		s, err := New(ctx, o)
		var known *driver.Error
		if s != nil && err == nil || !errors.As(err, &known) || known.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStreamsEndWithTheirCredentials: a token that is revoked, a user that is disabled, or has another role, reads no
// stream any more.
func TestStreamsEndWithTheirCredentials(t *testing.T) {
	t.Parallel()
	stream := func(contentType string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, "\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
	}
	r := start(t, Options{Mounts: []Mount{{Path: "/events", Handler: stream("text/event-stream")},
		{Path: "/lines", Handler: stream("application/x-ndjson"), Programs: true}}})
	ctx := context.Background()
	revoked, kept := r.token(), r.token()
	r.user("ann", "correct horse 1", auth.Operator)
	r.user("bob", "correct horse 2", auth.Operator)
	ann := r.form("name=ann&password=correct+horse+1").cookie(t)
	bob := r.form("name=bob&password=correct+horse+2").cookie(t)
	good := r.read("/lines", "Authorization", kept)
	ending := []io.ReadCloser{r.read("/events", "Authorization", revoked), r.read("/lines", "Authorization", revoked),
		r.read("/events", "Cookie", ann), r.read("/lines", "Cookie", bob)}
	id := strings.Split(revoked, "_")[1]
	lower := auth.User{Name: "bob", Grants: []auth.Grant{{Role: auth.Viewer}}}
	if err := errors.Join(r.tokens.Revoke(ctx, id), r.users.Disable(ctx, "ann"),
		r.users.Put(ctx, lower, auth.Secret{})); err != nil {
		t.Fatal(err)
	}
	for _, body := range ending {
		_, _ = io.Copy(io.Discard, body) // until it ends
		_ = body.Close()
	}
	r.streams.mu.Lock()
	defer r.streams.mu.Unlock()
	if len(r.streams.open) != 1 {
		t.Errorf("%d streams are open, not the one that may be", len(r.streams.open))
	}
	_ = good.Close()
}

// read opens a stream, and returns when it has begun.
func (r *rig) read(path string, header ...string) io.ReadCloser {
	r.t.Helper()
	req, err := http.NewRequest(http.MethodGet, r.URL()+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set(header[0], header[1])
	res, err := r.http.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil || res.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %s, %v", path, res.Status, err)
	}
	return res.Body
}
