package auth

import (
	"context"
	"testing"
)

// TestMay is every role and every scope, on a topic, on another one, and on none.
func TestMay(t *testing.T) {
	t.Parallel()
	viewer, operator, admin := &Identity{Grants: []Grant{{Role: Viewer}}}, &Identity{Grants: []Grant{{Role: Operator}}},
		&Identity{Grants: []Grant{{Role: Administrator}}}
	holds := map[Scope][3]bool{ // viewer, operator, admin
		View: {true, true, true}, Metrics: {true, true, true},
		Operate: {false, true, true}, Payload: {false, true, true}, Publish: {false, true, true},
		Consume: {false, true, true},
		Admin:   {false, false, true},
		"odd":   {}, "": {},
	}
	for _, s := range Scopes() {
		if _, ok := holds[s]; !ok {
			t.Errorf("scope %s is not in the table", s)
		}
	}
	for s, want := range holds {
		for i, who := range []*Identity{viewer, operator, admin} {
			if who.May(s, "orders") != want[i] || who.May(s, "") != want[i] || who.MayAny(s) != want[i] {
				t.Errorf("%s of %s is not %v", s, Roles()[i], want[i])
			}
		}
		if (*Identity)(nil).May(s, "orders") || (&Identity{}).May(s, "orders") ||
			(&Identity{Grants: []Grant{{Role: "odd"}}}).May(s, "orders") {
			t.Errorf("nobody may %s", s)
		}
	}
}

func TestMayOnTopics(t *testing.T) {
	t.Parallel()
	i := &Identity{Grants: []Grant{{Role: Viewer, Topics: []string{"*"}},
		{Role: Operator, Topics: []string{"orders.*", "mail"}}}}
	for topic, want := range map[string]bool{"orders.eu": true, "orders.eu.west": true, "mail": true, "orders": false,
		"mails": false, "xorders.eu": false, "": false} {
		if i.May(Operate, topic) != want {
			t.Errorf("operate on %q is not %v", topic, want)
		}
	}
	if !i.May(View, "anything") || !i.May(View, "") || !i.MayAny(Operate) || i.MayAny(Admin) {
		t.Error("a grant on every topic, and one on some, are not told apart")
	}
}

func TestScopesBoundGrants(t *testing.T) {
	t.Parallel()
	i := &Identity{Grants: []Grant{{Role: Administrator, Topics: []string{"orders"}}}, Scopes: []Scope{Publish}}
	if !i.May(Publish, "orders") || i.May(Publish, "mail") || i.May(View, "orders") || i.May(Admin, "orders") {
		t.Error("a token may do more, or less, than its scope on its topic")
	}
	i.Scopes = []Scope{}
	if i.May(Publish, "orders") {
		t.Error("no scopes at all allow something")
	}
}

func TestChecks(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"orders", "*", "orders.*", "*.eu", "a*b"} {
		if err := CheckPatterns([]string{p}); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range []string{"", "[a]", "a?", "a/b", `a\b`, "a b", "\x00"} {
		if CheckPatterns([]string{p}) == nil {
			t.Errorf("%q is taken for a pattern", p)
		}
	}
	if CheckScopes([]Scope{View, "root"}) == nil || CheckScopes(Scopes()) != nil || CheckRole("root") == nil ||
		CheckRole(Viewer) != nil {
		t.Error("scopes or roles are not checked")
	}
	if (Grant{Role: "root"}).Check() == nil || (Grant{Role: Viewer, Topics: []string{"?"}}).Check() == nil ||
		(Grant{Role: Viewer}).Check() != nil {
		t.Error("grants are not checked")
	}
}

func TestContext(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	if From(ctx) != nil || RequestID(ctx) != "" || From(ctx).String() != "nobody" {
		t.Error("an empty context knows somebody")
	}
	i := &Identity{Name: "ann", Kind: KindUser}
	ctx = WithRequestID(With(ctx, i), "r1")
	if From(ctx) != i || RequestID(ctx) != "r1" || i.String() != "user ann" {
		t.Error("the context does not tell who asks")
	}
}
