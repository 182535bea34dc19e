package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const usersBucket = driver.AuthBucket + ".users"

// User is somebody who logs in with a password.
type User struct {
	Name   string    `json:"name"`
	Grants []Grant   `json:"grants"`
	Set    time.Time `json:"set"` // when the password was set
	// Disabled says that it cannot log in. Put leaves it: Disable and Enable change it.
	Disabled bool `json:"disabled,omitempty"`
}

// storedUser is a user as it lies in the broker.
type storedUser struct {
	User
	Hash string `json:"hash"`
	// Ended counts how often its sessions were ended: those of before stay so when it is enabled again.
	Ended int `json:"ended,omitempty"`
}

// Users are the users of a broker, the same for all its servers. It is safe for concurrent use.
type Users struct{ kv driver.KV }

// NewUsers returns the users of a broker.
func NewUsers(b *ferry.Broker) *Users { return &Users{b.Driver().KV()} }

// Put makes a user, or changes its grants and password. An empty password leaves that of a user who exists. Who changes
// a password ends the sessions of its user.
func (u *Users) Put(ctx context.Context, user User, password Secret) error {
	if err := checkUser(user); err != nil {
		return err
	}
	old, revision, err := u.get(ctx, user.Name)
	if err != nil && !errors.Is(err, driver.ErrNotFound) {
		return err
	}
	stored := storedUser{User: user, Hash: old.Hash, Ended: old.Ended}
	stored.Set, stored.Disabled = old.Set, old.Disabled
	if !password.Empty() || revision == 0 {
		if err := checkPassword(password); err != nil {
			return err
		}
		if stored.Hash, err = hashPassword(ctx, password); err != nil {
			return err
		}
		stored.Set = time.Now().UTC()
	}
	return u.write(ctx, stored, revision)
}

// write stores a user that was read at a revision; 0: it was not there.
func (u *Users) write(ctx context.Context, stored storedUser, revision uint64) error {
	data, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	condition := driver.Absent
	if revision != 0 {
		condition = driver.Condition(revision)
	}
	return u.kv.Apply(ctx, usersBucket, driver.KVOptions{}, driver.Write{Name: stored.Name, Data: data,
		If: condition})[0].Err
}

// Disable keeps a user out, and ends its sessions, until Enable. Roles and password stay.
func (u *Users) Disable(ctx context.Context, name string) error {
	return u.setDisabled(ctx, name, true)
}

// Enable lets a user log in again.
func (u *Users) Enable(ctx context.Context, name string) error {
	return u.setDisabled(ctx, name, false)
}

func (u *Users) setDisabled(ctx context.Context, name string, disabled bool) error {
	stored, revision, err := u.get(ctx, name)
	if err != nil {
		return err
	}
	if stored.Disabled = disabled; disabled {
		stored.Ended++
	}
	return u.write(ctx, stored, revision)
}

func checkUser(user User) error {
	if err := driver.CheckName("user", user.Name); err != nil {
		return err
	}
	if len(user.Grants) == 0 {
		return driver.NewError(driver.ErrInvalid, fmt.Sprintf("user %q has no role", user.Name),
			fmt.Sprintf("give one of %v", Roles()), nil)
	}
	for _, g := range user.Grants {
		if err := g.Check(); err != nil {
			return err
		}
	}
	return nil
}

// Get returns a user, or ErrNotFound.
func (u *Users) Get(ctx context.Context, name string) (User, error) {
	stored, _, err := u.get(ctx, name)
	return stored.User, err
}

func (u *Users) get(ctx context.Context, name string) (storedUser, uint64, error) {
	unknown := driver.NewError(driver.ErrNotFound, fmt.Sprintf("there is no user %.80q", name),
		"list them: ferry user ls", nil)
	if driver.CheckName("user", name) != nil {
		return storedUser{}, 0, unknown
	}
	values, err := u.kv.Get(ctx, usersBucket, name)
	if err != nil {
		return storedUser{}, 0, err
	}
	if values[0].Revision == 0 {
		return storedUser{}, 0, unknown
	}
	stored, err := decodeUser(values[0])
	return stored, values[0].Revision, err
}

func decodeUser(v driver.Value) (storedUser, error) {
	var s storedUser
	if err := json.Unmarshal(v.Data, &s); err != nil {
		return s, driver.NewError(driver.ErrInvalid, fmt.Sprintf("user %q cannot be read", v.Name),
			"remove it and make it again", err)
	}
	s.Name = v.Name
	return s, nil
}

// Delete removes a user, and with it its sessions. ErrNotFound if there is none.
func (u *Users) Delete(ctx context.Context, name string) error {
	if _, _, err := u.get(ctx, name); errors.Is(err, driver.ErrNotFound) {
		return err
	}
	return u.kv.Apply(ctx, usersBucket, driver.KVOptions{}, driver.Write{Name: name, Delete: true})[0].Err
}

// UserPage is a page of users, in order of names.
type UserPage struct {
	Users []User
	// Next continues after this page; empty at the end.
	Next string
}

// List returns a page of the users, from a cursor on; at most limit, 100 if that is 0.
func (u *Users) List(ctx context.Context, cursor string, limit int) (UserPage, error) {
	p, err := u.kv.List(ctx, driver.KVQuery{Bucket: usersBucket, After: cursor, Limit: limit})
	if err != nil {
		return UserPage{}, err
	}
	out := UserPage{Next: p.Next}
	for _, v := range p.Values {
		s, err := decodeUser(v)
		if err != nil {
			return UserPage{}, err
		}
		out.Users = append(out.Users, s.User)
	}
	return out, nil
}

// Login returns who a name and a password belong to. ErrRefused says that they do not, and not which of them is wrong.
func (u *Users) Login(ctx context.Context, name string, password Secret) (*Identity, error) {
	stored, _, err := u.get(ctx, name)
	switch {
	case errors.Is(err, driver.ErrNotFound):
		stored.Hash = nobodysHash
	case err != nil:
		return nil, err
	}
	fits, hashErr := matchesHash(ctx, stored.Hash, password)
	if hashErr != nil {
		return nil, hashErr
	}
	if err != nil || !fits || stored.Disabled {
		return nil, driver.NewError(driver.ErrRefused, "the name or the password is wrong",
			"try again, or have an administrator set it: ferry user set NAME", nil)
	}
	return stored.identity(), nil
}

func (s storedUser) identity() *Identity {
	return &Identity{Name: s.Name, Kind: KindUser, Grants: s.Grants}
}
