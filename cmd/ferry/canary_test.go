package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/internal/oidctest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/wecom/wecomtest"
)

// canaries are secrets in every place of a server that takes one: if one is found elsewhere, it sang.
var canaries = map[string]string{
	"broker": "Canary7-redis", "channel": "Canary7-hook", "oidc": "Canary7-oidc", "password": "Canary7-password",
	"wrong password": "Canary7-wrong",
	"encryption":     "Q2FuYXJ5Ny1lbmNyeXB0aW9uLWtleS0zMi1ieXRlcyE=", "header": "Canary7-header", "field": "Canary7-field",
	"query": "Canary7-query",
}

// TestCanariesOfAServer asks a server in a process of its own for everything, with its broker and without it, and looks
// for secrets in what it answered, in its metrics, in its log and on its command line.
func TestCanariesOfAServer(t *testing.T) {
	t.Parallel()
	redis := redistest.Single(t, redistest.Options{Password: canaries["broker"]})
	s, token, secrets := serveCanaries(t, redis)
	said := newSaid(s, token)
	said.plant()
	said.askAll()
	redis.Kill()
	said.askAll()
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	said.add("the command line", string(command))
	said.add("what it printed", regexp.MustCompile(`once=\S+`).ReplaceAllString(s.out, ""))
	s.kill()
	said.add("the log", s.logged())
	for where, has := range map[string]string{"/metrics": "ferry_", "the log": "request",
		"GET /api/v1/topics/orders/messages": `"masked":true`, "GET /api/v1/broker again": "unavailable"} {
		if !strings.Contains(said.all(where), has) {
			t.Errorf("%s has no %s:\n%.2000s", where, has, said.all(where))
		}
	}
	if len(said.texts) < 200 {
		t.Errorf("only %d answers were looked at", len(said.texts))
	}
	for what, secret := range secrets {
		for where, text := range said.texts {
			if strings.Contains(text, secret) {
				t.Errorf("the secret of %s is in %s:\n%.2000s", what, where, text)
			}
		}
	}
}

// serveCanaries starts a server that has a secret in every place for one.
func serveCanaries(t *testing.T, redis *redistest.Server) (s *served, token string, secrets map[string]string) {
	t.Helper()
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no: "+r.URL.String(), http.StatusInternalServerError) // an answer may repeat what it was asked with
	}))
	t.Cleanup(vendor.Close)
	service := wecomtest.Start(wecomtest.Options{})
	t.Cleanup(service.Close)
	wecom := service.Config()
	token, err := makeToken(redis.URL())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ferry.yaml")
	text := serverConfig + `listen: 127.0.0.1:0
masks: [{headers: [authorization], fields: [secret]}]
log: {level: debug}
oidc: {issuer: "` + oidctest.New(t).URL + `", client_id: ferry, groups: {ops: [{role: admin}]}}
wecom: {corp: ` + wecom.Corp + `, vendor: "` + wecom.Vendor + `", allow_private: [127.0.0.0/8]}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s = serve(t, []string{"FERRY_BROKER=" + redis.URL(), "FERRY_STORE=" + redis.URL(),
		"FERRY_NOTIFY_HOOK_OPS_URL=" + vendor.URL + "/" + canaries["channel"],
		"FERRY_OIDC_SECRET=" + canaries["oidc"], "FERRY_ENCRYPTION_KEYS=1:" + canaries["encryption"],
		"FERRY_WECOM_SECRET=" + string(wecom.Secret),
		"FERRY_WECOM_TOKEN=" + string(wecom.Keys[0].Token), "FERRY_WECOM_AES_KEY=" + string(wecom.Keys[0].AESKey)}, "serve",
		"--config", file)
	secrets = map[string]string{"a token": token, "wecom": string(wecom.Secret), "callbacks": string(wecom.Keys[0].Token),
		"the key of callbacks": string(wecom.Keys[0].AESKey)}
	for what, secret := range canaries {
		secrets[what] = secret
	}
	_, once, _ := strings.Cut(s.out, "once=")
	secrets["the login"] = strings.Fields(once)[0]
	return s, token, secrets
}

// said is what a server said.
type said struct {
	s     *served
	token string
	http  *http.Client

	mu    sync.Mutex
	texts map[string]string // by where it was said
}

func newSaid(s *served, token string) *said {
	return &said{s: s, token: token, texts: map[string]string{},
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (d *said) add(where, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.texts[where] != "" {
		where += " again"
	}
	d.texts[where] = text
}

// all is what was said in places with a name.
func (d *said) all(where string) (text string) {
	for at, one := range d.texts {
		if strings.Contains(at, where) {
			text += one
		}
	}
	return text
}

// ask notes an answer with its head. Of a stream it notes what comes at once.
func (d *said) ask(method, path, body string) (status int) {
	d.s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, d.s.url+path, strings.NewReader(body))
	if err != nil {
		d.s.t.Error(err)
		return 0
	}
	q.Header.Set("Authorization", "Bearer "+d.token)
	q.Header.Set("Content-Type", "application/json")
	res, err := d.http.Do(q)
	if err != nil {
		d.s.t.Errorf("%s %s: %v", method, path, err)
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		time.AfterFunc(time.Second, cancel)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil && !errors.Is(err, context.Canceled) {
		d.s.t.Errorf("%s %s: %v", method, path, err)
	}
	d.add(method+" "+path, fmt.Sprint(res.StatusCode, res.Header, string(text)))
	return res.StatusCode
}

// plant does what leaves secrets behind: a user, a wrong login, messages with parts that are masked, a channel that
// fails.
func (d *said) plant() {
	d.s.t.Helper()
	message := `{"body":"{\"id\":1,\"secret\":\"` + canaries["field"] + `\"}","headers":{"authorization":"` +
		canaries["header"] + `"},"content_type":"application/json"}`
	for _, step := range []struct {
		status             int
		method, path, body string
	}{
		{http.StatusOK, "PUT", "/api/v1/users/ann", `{"grants":[{"role":"admin"}],"password":"` + canaries["password"] +
			`"}`},
		{http.StatusUnauthorized, "POST", "/login", `{"name":"ann","password":"` + canaries["wrong password"] + `"}`},
		{http.StatusBadRequest, "POST", "/login", `{"name":"ann","password":"` + canaries["wrong password"] + `"`},
		{http.StatusOK, "PUT", "/api/v1/topics/orders/groups/default", `{}`},
		{http.StatusOK, "POST", "/api/v1/topics/orders/messages", message},
		{http.StatusOK, "POST", "/api/v1/topics/orders/messages", strings.Replace(message, "{", `{"delay":"1h",`, 1)},
		{http.StatusOK, "POST", "/api/v1/channels/hook/test", `{"to":"ops"}`},
		{http.StatusUnprocessableEntity, "GET", "/api/v1/topics?token=" + canaries["query"], ""},
		{http.StatusSeeOther, "GET", "/oidc/login", ""},
	} {
		if status := d.ask(step.method, step.path, step.body); status != step.status {
			d.s.t.Errorf("%s %s answered %d, want %d: %s", step.method, step.path, status, step.status, d.all(step.path))
		}
	}
}

// askAll asks every route of the document that only looks, those that act with what is wrong, and every page.
func (d *said) askAll() {
	d.s.t.Helper()
	all := []string{"GET /metrics", "GET /healthz", "GET /readyz", "GET /livez", "GET /login", "GET /", "GET /docs",
		"GET /nothing", "GET /v1/openapi.json",
		"POST /v1/topics/orders/groups/default/receive", "GET /v1/push", "GET /oidc/return?state=x&code=x"}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	file, err := os.ReadFile(filepath.Join(repository, "admin", "openapi.json"))
	if err == nil {
		err = json.Unmarshal(file, &doc)
	}
	if err != nil {
		d.s.t.Fatal(err)
	}
	names := strings.NewReplacer("{topic}", "orders", "{group}", "default", "{name}", "ann")
	for path, methods := range doc.Paths {
		for method := range methods {
			all = append(all, strings.ToUpper(method)+" "+regexp.MustCompile(`\{\w+\}`).ReplaceAllString(names.Replace(path),
				"none"))
		}
	}
	if !slices.Contains(all, "GET "+admin.SpecPath) {
		all = append(all, "GET "+admin.SpecPath)
	}
	looks := func(one string) bool { return strings.HasPrefix(one, "GET ") }
	d.askEach(slices.DeleteFunc(slices.Clone(all), func(one string) bool { return !looks(one) }))
	d.askEach(slices.DeleteFunc(all, looks)) // which remove some of it
}

func (d *said) askEach(all []string) {
	slots := make(chan struct{}, 8)
	var asking sync.WaitGroup
	for _, one := range all {
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			method, path, _ := strings.Cut(one, " ")
			body := ""
			if method != http.MethodGet {
				body = `{"nope":"` + canaries["field"] + `"}`
			}
			d.ask(method, path, body)
		})
	}
	asking.Wait()
}
