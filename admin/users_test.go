package admin

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
)

// TestUsers: an administrator makes, changes, disables and removes users, and no answer or action tells a password.
func TestUsers(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		users, sessions := auth.NewUsers(r.broker), auth.NewSessions(r.broker, auth.SessionOptions{})
		password := auth.NewSecret("canary of a password")
		path := api.Base + "/users/bob"
		r.refused(http.StatusBadRequest, "PUT", path, api.SetUser{Password: password.Reveal()})
		r.refused(http.StatusBadRequest, "PUT", path, api.SetUser{Grants: []api.Grant{{Role: "viewer"}}})
		r.refused(http.StatusBadRequest, "PUT", path,
			api.SetUser{Grants: []api.Grant{{Role: "viewer", Topics: []string{"a b"}}}, Password: password.Reveal()})
		r.refused(http.StatusNotFound, "GET", path, nil)
		var bob api.User
		r.ask(http.StatusOK, "PUT", path, api.SetUser{Grants: []api.Grant{{Role: "operator", Topics: []string{"ord*"}}},
			Password: password.Reveal()}, &bob)
		who, err := users.Login(r.Context(), "bob", password)
		if err != nil || !who.May(auth.Operate, topic) || bob.Disabled || bob.Set == nil {
			t.Fatalf("%+v logs in as %v, %v", bob, who, err)
		}
		session, err := sessions.Start(r.Context(), who)
		if err != nil {
			t.Fatal(err)
		}
		r.ask(http.StatusOK, "PUT", path, api.SetUser{Grants: []api.Grant{{Role: "viewer"}}}, &bob)
		if who, err := sessions.Find(r.Context(), session); err != nil || who.May(auth.Operate, topic) ||
			!who.May(auth.View, "mails") {
			t.Errorf("with another role the session is of %v, %v", who, err)
		}
		r.ask(http.StatusNoContent, "POST", path+"/disable", nil, nil)
		if _, err := users.Login(r.Context(), "bob", password); err == nil {
			t.Error("a disabled user logged in")
		}
		r.ask(http.StatusOK, "PUT", path, api.SetUser{Password: "another password"}, &bob)
		if !bob.Disabled || len(bob.Grants) != 1 || bob.Grants[0].Role != "viewer" {
			t.Errorf("with another password only: %+v", bob)
		}
		r.ask(http.StatusNoContent, "POST", path+"/enable", nil, nil)
		if _, err := users.Login(r.Context(), "bob", auth.NewSecret("another password")); err != nil {
			t.Errorf("an enabled user: %v", err)
		}
		if _, err := sessions.Find(r.Context(), session); err == nil {
			t.Error("the session of before goes on")
		}
		var page api.UserPage
		if r.get(api.Base+"/users", &page); len(page.Users) != 1 || page.Users[0].Name != "bob" {
			t.Errorf("users: %+v", page)
		}
		r.ask(http.StatusNoContent, "DELETE", path, nil, nil)
		r.refused(http.StatusNotFound, "DELETE", path, nil)
		r.refused(http.StatusNotFound, "POST", path+"/enable", nil)
		if w := r.do("GET", api.Base+"/actions", "", nil); strings.Contains(w.Body.String(), "canary") ||
			!strings.Contains(w.Body.String(), "user.disable") {
			t.Errorf("actions: %s", w.Body)
		}
	})
}

// TestUsersGiveNothingAway: who lacks a scope makes no user who has it, takes over none, and nobody locks themselves
// out.
func TestUsersGiveNothingAway(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		r.ask(http.StatusOK, "PUT", api.Base+"/users/root", api.SetUser{Grants: []api.Grant{{Role: "admin"}},
			Password: "a long password"}, nil)
		bound := *r
		bound.who = &auth.Identity{Kind: auth.KindToken, Grants: boss.Grants,
			Scopes: []auth.Scope{auth.Admin, auth.View, auth.Metrics}}
		bound.refused(http.StatusForbidden, "PUT", api.Base+"/users/eve",
			api.SetUser{Grants: []api.Grant{{Role: "operator"}}, Password: "a long password"})
		bound.refused(http.StatusForbidden, "PUT", api.Base+"/users/root", api.SetUser{Password: "a longer password"})
		bound.refused(http.StatusForbidden, "PUT", api.Base+"/users/root",
			api.SetUser{Grants: []api.Grant{{Role: "viewer"}}, Password: "a longer password"})
		bound.ask(http.StatusOK, "PUT", api.Base+"/users/vera", api.SetUser{Grants: []api.Grant{{Role: "viewer"}},
			Password: "a long password"}, nil)
		root := *r
		root.who = &auth.Identity{Name: "root", Kind: auth.KindUser, Grants: boss.Grants}
		root.refused(http.StatusConflict, "PUT", api.Base+"/users/root", api.SetUser{Grants: []api.Grant{{Role: "viewer"}}})
		root.ask(http.StatusOK, "PUT", api.Base+"/users/root", api.SetUser{Password: "a longer password"}, nil)
		root.refused(http.StatusConflict, "DELETE", api.Base+"/users/root", nil)
		root.refused(http.StatusConflict, "POST", api.Base+"/users/root/disable", nil)
	})
}
