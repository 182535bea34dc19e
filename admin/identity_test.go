package admin

import (
	"reflect"
	"testing"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
)

// TestIdentity: everybody is told which scopes they have, and on which topics; a token no more than it was made for.
func TestIdentity(t *testing.T) {
	virtual(t, Options{}, func(r *rig) {
		mixed := r.as(auth.Grant{Role: auth.Viewer})
		mixed.who.Name, mixed.who.Kind = "ann", auth.KindUser
		mixed.who.Grants = append(mixed.who.Grants, auth.Grant{Role: auth.Operator, Topics: []string{"ord*", "mails"}})
		var got api.Identity
		mixed.get(api.Base+"/identity", &got)
		some := []string{"mails", "ord*"}
		want := api.Identity{Name: "ann", Kind: "user", Scopes: []api.ScopeOn{{Scope: "publish", Topics: some},
			{Scope: "consume", Topics: some},
			{Scope: "view", Topics: []string{}}, {Scope: "operate", Topics: some}, {Scope: "payload", Topics: some},
			{Scope: "metrics", Topics: []string{}}}}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v", got)
		}
		token := *r
		token.who = &auth.Identity{Name: "ci", Kind: auth.KindToken, Grants: []auth.Grant{{Role: auth.Administrator}},
			Scopes: []auth.Scope{auth.View}}
		token.get(api.Base+"/identity", &got)
		if len(got.Scopes) != 1 || got.Scopes[0].Scope != "view" {
			t.Errorf("a token with one scope has %+v", got.Scopes)
		}
	})
}
