package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/client"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/internal/runtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs an API that knows its callers by token, and returns a client with every scope.
func serve(t *testing.T) (*client.Client, string) {
	t.Helper()
	b, err := memory.Open(t.Context(), memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store := guard.NewMemory(guard.MemoryOptions{})
	a, err := admin.New(admin.Options{Broker: b, Guards: store, Actions: auth.NewActions(b)})
	if err != nil {
		t.Fatal(err)
	}
	tokens := auth.NewTokens(b)
	_, secret, err := tokens.Create(t.Context(), auth.TokenRequest{Name: "test", Scopes: auth.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		who, _ := tokens.Check(r.Context(), auth.NewSecret(text))
		a.ServeHTTP(w, r.WithContext(auth.With(r.Context(), who)))
	}))
	stop := runtest.Start(t, a.Run)
	t.Cleanup(func() {
		s.Close()
		stop()
		if err := errors.Join(store.Close(context.Background()), b.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	if _, err := ferry.Publish(t.Context(), b, "orders", "x"); err != nil {
		t.Fatal(err)
	}
	return newClient(t, s.URL, secret.Reveal()), s.URL
}

func newClient(t *testing.T, url, token string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: url, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEverything asks for each thing once, of a real server.
func TestEverything(t *testing.T) {
	t.Parallel()
	c, _ := serve(t)
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	op, err := c.Purge(ctx, "orders", api.Purge{})
	ok(err)
	op, err = c.WaitOperation(ctx, op.ID)
	if err != nil || op.Done != 1 {
		t.Errorf("purged %+v, %v", op, err)
	}
	_, err = c.Replay(ctx, api.ReplayMany{})
	ok(err)
	page, err := c.Operations(ctx, client.Page{Limit: 10}, false)
	if err != nil || len(page.Operations) != 2 {
		t.Errorf("operations %+v, %v", page, err)
	}
	_, err = c.Members(ctx)
	ok(err)
	body := "{}"
	_, err = c.PutSchedule(ctx, "a b", api.PutSchedule{Spec: "@hourly", Topic: "orders",
		Message: api.NewMessage{Body: &body}})
	ok(err)
	ok(c.PauseSchedule(ctx, "a b"))
	ok(c.ResumeSchedule(ctx, "a b"))
	_, err = c.TriggerSchedule(ctx, "a b")
	ok(err)
	s, err := c.Schedule(ctx, "a b")
	if err != nil || s.Spec != "@hourly" {
		t.Errorf("schedule %+v, %v", s, err)
	}
	ok(c.DeleteSchedule(ctx, "a b"))
	ok(c.Block(ctx, "limit", "a/b", api.BlockKey{Reason: "spam"}))
	keys, err := c.LimitKeys(ctx, client.Page{}, "blocked")
	if err != nil || len(keys.Keys) != 1 || keys.Keys[0].Key != "a/b" {
		t.Errorf("keys %+v, %v", keys, err)
	}
	ok(c.Unblock(ctx, "limit", "a/b", "sorry"))
	ok(c.SetRule(ctx, "limit", "vip", api.SetRule{Rule: api.Rule{Unlimited: true}}))
	rules, err := c.LimitRules(ctx)
	if err != nil || len(rules) != 1 || rules[0].Group != "vip" {
		t.Errorf("rules %+v, %v", rules, err)
	}
	ok(c.ClearRule(ctx, "limit", "vip", "over"))
	bob, err := c.SetUser(ctx, "bob", api.SetUser{Grants: []api.Grant{{Role: "viewer"}}, Password: "a long password"})
	if err != nil || bob.Name != "bob" {
		t.Errorf("user %+v, %v", bob, err)
	}
	ok(c.DisableUser(ctx, "bob"))
	users, err := c.Users(ctx, client.Page{})
	if err != nil || len(users.Users) != 1 || !users.Users[0].Disabled {
		t.Errorf("users %+v, %v", users, err)
	}
	ok(c.EnableUser(ctx, "bob"))
	ok(c.RemoveUser(ctx, "bob"))
	ok(c.ForceBreaker(ctx, "billing", api.ForceBreaker{State: "open"}))
	breakers, err := c.Breakers(ctx)
	if err != nil || len(breakers) != 1 {
		t.Errorf("breakers %+v, %v", breakers, err)
	}
	made, err := c.CreateToken(ctx, api.CreateToken{Name: "view", Scopes: []string{"view"}})
	ok(err)
	ok(c.RevokeToken(ctx, made.ID))
	actions, err := c.Actions(ctx, client.Page{})
	if err != nil || len(actions.Actions) < 10 || actions.Actions[0].What != "token.revoke" {
		t.Errorf("actions %+v, %v", actions, err)
	}
}

// TestErrorsHaveKinds: those of package ferry, with the problem behind them.
func TestErrorsHaveKinds(t *testing.T) {
	t.Parallel()
	c, url := serve(t)
	var p *api.Problem
	_, err := c.Operation(t.Context(), "none")
	if !errors.Is(err, ferry.ErrNotFound) || !errors.As(err, &p) || p.RequestID == "" {
		t.Errorf("not found: %v", err)
	}
	_, err = newClient(t, url, "wrong").Members(t.Context())
	if !errors.Is(err, ferry.ErrRefused) {
		t.Errorf("a wrong token: %v", err)
	}
	if err := c.Request(t.Context(), http.MethodGet, "/topics", map[string][]string{"limit": {"0"}}, nil,
		nil); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("a limit of 0: %v", err)
	}
	elsewhere := httptest.NewServer(http.NotFoundHandler())
	defer elsewhere.Close()
	if _, err := newClient(t, elsewhere.URL, "").Members(t.Context()); !errors.Is(err, ferry.ErrUnknown) {
		t.Errorf("another server: %v", err)
	}
	elsewhere.Close()
	if _, err := newClient(t, elsewhere.URL, "").Members(t.Context()); !errors.Is(err, ferry.ErrNotApplied) {
		t.Errorf("no server: %v", err)
	}
}

func TestWrongOptions(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "ferry.example", "ftp://ferry.example", "https://ann:secret@ferry.example",
		"https://ferry.example?x=1"} {
		if _, err := client.New(client.Options{URL: url}); !errors.Is(err, ferry.ErrInvalid) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := client.New(client.Options{URL: "http://ferry.example", Token: "t"}); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("a token in clear: %v", err)
	}
}
