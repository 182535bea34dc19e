package admin

import (
	"context"
	"errors"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/admin/internal/input"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

func (a *API) listUsers(ctx context.Context, in *input.Paging) (api.UserPage, error) {
	p, err := a.users.List(ctx, in.Cursor, in.Limit)
	out := api.UserPage{Users: make([]api.User, len(p.Users)), Next: p.Next}
	for i, u := range p.Users {
		out.Users[i] = viewUser(u)
	}
	return out, err
}

func viewUser(u auth.User) api.User {
	v := api.User{Name: u.Name, Grants: make([]api.Grant, len(u.Grants)), Disabled: u.Disabled, Set: jsontime.At(u.Set)}
	for i, g := range u.Grants {
		v.Grants[i] = api.Grant{Role: string(g.Role), Topics: g.Topics}
	}
	return v
}

func (a *API) showUser(ctx context.Context, in *input.UserName) (api.User, error) {
	u, err := a.users.Get(ctx, in.Name)
	return viewUser(u), err
}

type setUser struct {
	input.UserName
	Body api.SetUser
}

// setUser makes a user, or changes one. Nobody gives away a scope that they do not have, nor sets the password of
// somebody who has it: they could log in with it.
func (a *API) setUser(ctx context.Context, in *setUser, note *auth.Action) (api.User, error) {
	note.Detail = in.Name
	if in.Body.Grants != nil {
		if err := notOneself(ctx, in.Name); err != nil {
			return api.User{}, err
		}
	}
	old, err := a.users.Get(ctx, in.Name)
	if err != nil && !errors.Is(err, driver.ErrNotFound) {
		return api.User{}, err
	}
	u := auth.User{Name: in.Name, Grants: old.Grants}
	if in.Body.Grants != nil {
		u.Grants = grantsOf(in.Body.Grants)
	}
	if err := mayGive(ctx, append(old.Grants, u.Grants...)); err != nil {
		return api.User{}, err
	}
	if err := a.users.Put(ctx, u, auth.NewSecret(in.Body.Password)); err != nil {
		return api.User{}, err
	}
	return a.showUser(ctx, &in.UserName)
}

func grantsOf(all []api.Grant) []auth.Grant {
	out := make([]auth.Grant, len(all))
	for i, g := range all {
		out[i] = auth.Grant{Role: auth.Role(g.Role), Topics: g.Topics}
	}
	return out
}

// mayGive returns a problem unless whoever asks has every scope that the grants have.
func mayGive(ctx context.Context, grants []auth.Grant) error {
	for _, g := range grants {
		for _, s := range auth.Scopes() {
			if !g.Role.Holds(s) {
				continue
			}
			if err := may(ctx, s, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// notOneself keeps administrators from locking themselves out, who may be the last ones.
func notOneself(ctx context.Context, name string) error {
	if who := auth.From(ctx); who.Kind == auth.KindUser && who.Name == name {
		return driver.NewError(driver.ErrConflict, "this is yourself",
			"have another administrator do it, or use 'ferry user'", nil)
	}
	return nil
}

func (a *API) removeUser(ctx context.Context, in *input.UserName, note *auth.Action) error {
	note.Detail = in.Name
	if err := notOneself(ctx, in.Name); err != nil {
		return err
	}
	return a.users.Delete(ctx, in.Name)
}

func (a *API) disableUser(ctx context.Context, in *input.UserName, note *auth.Action) error {
	note.Detail = in.Name
	if err := notOneself(ctx, in.Name); err != nil {
		return err
	}
	return a.users.Disable(ctx, in.Name)
}

func (a *API) enableUser(ctx context.Context, in *input.UserName, note *auth.Action) error {
	note.Detail = in.Name
	return a.users.Enable(ctx, in.Name)
}
