package auth

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

var ann = User{Name: "ann", Grants: []Grant{{Role: Operator, Topics: []string{"orders.*"}}}}

const annsPassword = "correct horse"

func putAnn(t *testing.T, u *Users) {
	t.Helper()
	if err := u.Put(context.Background(), ann, NewSecret(annsPassword)); err != nil {
		t.Fatal(err)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	ctx, u := context.Background(), NewUsers(broker(t))
	putAnn(t, u)
	i, err := u.Login(ctx, "ann", NewSecret(annsPassword))
	if err != nil || i.String() != "user ann" || !i.May(Operate, "orders.eu") || i.May(Operate, "mail") {
		t.Fatalf("%+v, %v", i, err)
	}
	for _, wrong := range [][2]string{{"ann", "correct horsE"}, {"bob", annsPassword}, {"", ""},
		{"../ann", annsPassword}, {"ann\x00", annsPassword}} {
		if _, err := u.Login(ctx, wrong[0], NewSecret(wrong[1])); !errors.Is(err, driver.ErrRefused) ||
			strings.Contains(err.Error(), wrong[0]) && wrong[0] != "" {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	changed := ann
	changed.Grants = []Grant{{Role: Viewer}}
	if err := u.Put(ctx, changed, Secret{}); err != nil { // keeps the password
		t.Fatal(err)
	}
	if i, err := u.Login(ctx, "ann", NewSecret(annsPassword)); err != nil || i.May(Operate, "orders.eu") ||
		!i.May(View, "mail") {
		t.Errorf("%+v, %v", i, err)
	}
	p, err := u.List(ctx, "", 0)
	if err != nil || len(p.Users) != 1 || p.Users[0].Name != "ann" || p.Users[0].Set.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if err := u.Delete(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	if err := u.Delete(ctx, "ann"); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
}

func TestWrongUsers(t *testing.T) {
	t.Parallel()
	u := NewUsers(broker(t))
	good := NewSecret(annsPassword)
	for name, wrong := range map[string]struct {
		user     User
		password Secret
	}{
		"no name":       {User{Grants: ann.Grants}, good},
		"an odd name":   {User{Name: "a b", Grants: ann.Grants}, good},
		"no role":       {User{Name: "ann"}, good},
		"an odd role":   {User{Name: "ann", Grants: []Grant{{Role: "root"}}}, good},
		"no password":   {ann, Secret{}},
		"a short one":   {ann, NewSecret("short")},
		"a long one":    {ann, NewSecret(strings.Repeat("x", MaxPassword+1))},
		"not in UTF-8":  {ann, NewSecret("\xff\xfe\xff\xfe\xff\xfe\xff\xfe\xff\xfe")},
		"an odd topic":  {User{Name: "ann", Grants: []Grant{{Role: Viewer, Topics: []string{"a b"}}}}, good},
		"an empty role": {User{Name: "ann", Grants: []Grant{{}}}, good},
	} {
		if err := u.Put(context.Background(), wrong.user, wrong.password); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, _ := u.List(context.Background(), "", 0); len(p.Users) != 0 {
		t.Error("a wrong user is there")
	}
}
