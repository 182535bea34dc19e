package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const (
	// SessionIdle is how long a session that is not used is good, by default.
	SessionIdle = 2 * time.Hour
	// SessionMax is how long a session is good at all, by default.
	SessionMax = 24 * time.Hour

	sessionsBucket = driver.AuthBucket + ".sessions"
	touchEvery     = time.Minute // so that a console that asks each second does not write each second
)

// SessionOptions say how long sessions are good.
type SessionOptions struct {
	// Idle is until when a session ends that is not used. Defaults to SessionIdle, and is a minute at least.
	Idle time.Duration
	// Max is until when a session ends at all. Defaults to SessionMax.
	Max time.Duration
}

// session is a login as it lies in the broker, under the hash of its id: who reads the broker cannot use it.
type session struct {
	Name    string    `json:"name"`
	Kind    string    `json:"kind"`
	Grants  []Grant   `json:"grants,omitempty"` // of who is no user of the broker
	Set     time.Time `json:"set,omitzero"`     // of the user's password: another one ends the session
	Ended   int       `json:"ended,omitempty"`  // how often those of the user had been ended
	Created time.Time `json:"created"`
	Touched time.Time `json:"touched"` // when it was used, to the minute
}

// Sessions are the logins of a broker, the same for all its servers: another goes on with one when a server is gone. It
// is safe for concurrent use.
type Sessions struct {
	kv    driver.KV
	users *Users
	o     SessionOptions
}

// NewSessions returns the sessions of a broker.
func NewSessions(b *ferry.Broker, o SessionOptions) *Sessions {
	if o.Idle == 0 {
		o.Idle = SessionIdle
	}
	if o.Max == 0 {
		o.Max = SessionMax
	}
	o.Idle = max(o.Idle, touchEvery)
	return &Sessions{kv: b.Driver().KV(), users: NewUsers(b), o: o}
}

// Start begins a session of an identity, and returns its id, for a cookie.
func (s *Sessions) Start(ctx context.Context, i *Identity) (Secret, error) {
	id := rand.Text() + rand.Text() // 256 bits and more
	se := session{Name: i.Name, Kind: i.Kind, Grants: i.Grants, Created: time.Now().UTC()}
	if i.Kind == KindUser { // grants are looked up each time, so that what is taken away is gone at once
		user, _, err := s.users.get(ctx, i.Name)
		if err != nil {
			return Secret{}, err
		}
		se.Grants, se.Set, se.Ended = nil, user.Set, user.Ended
	}
	if err := s.write(ctx, sessionName(id), se, driver.Absent); err != nil {
		return Secret{}, err
	}
	return NewSecret(id), nil
}

func (s *Sessions) write(ctx context.Context, name string, se session, condition driver.Condition) error {
	se.Touched = time.Now().UTC()
	data, err := json.Marshal(se)
	if err != nil {
		return err
	}
	left := max(s.o.Max-time.Since(se.Created), driver.MinValueTTL)
	w := driver.Write{Name: name, Data: data, If: condition, TTL: min(s.o.Idle, left), Quiet: true}
	return s.kv.Apply(ctx, sessionsBucket, driver.KVOptions{}, w)[0].Err
}

func sessionName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

func errSession() error {
	return driver.NewError(driver.ErrRefused, "the session is over", "log in again", nil)
}

// Find returns whose session an id is, or ErrRefused, and keeps the session from ending idle.
func (s *Sessions) Find(ctx context.Context, id Secret) (*Identity, error) {
	values, err := s.kv.Get(ctx, sessionsBucket, sessionName(id.Reveal()))
	if err != nil {
		return nil, err
	}
	var se session
	if v := values[0]; v.Revision == 0 || json.Unmarshal(v.Data, &se) != nil || time.Since(se.Created) > s.o.Max {
		return nil, errSession()
	}
	i, err := s.identity(ctx, se)
	if err != nil {
		return nil, err
	}
	if time.Since(se.Touched) > touchEvery {
		err := s.write(ctx, values[0].Name, se, driver.Condition(values[0].Revision))
		if err != nil && !errors.Is(err, driver.ErrConflict) { // another request touched it
			return nil, err
		}
	}
	return i, nil
}

// identity returns who a session is of. A user has the grants of now; one that is gone or disabled, or has another
// password, has no session.
func (s *Sessions) identity(ctx context.Context, se session) (*Identity, error) {
	if se.Kind != KindUser {
		return &Identity{Name: se.Name, Kind: se.Kind, Grants: se.Grants}, nil
	}
	user, _, err := s.users.get(ctx, se.Name)
	switch {
	case errors.Is(err, driver.ErrNotFound):
		return nil, errSession()
	case err != nil:
		return nil, err
	case user.Disabled, user.Ended != se.Ended, !user.Set.Equal(se.Set):
		return nil, errSession()
	}
	return user.identity(), nil
}

// End ends a session at once, on every server.
func (s *Sessions) End(ctx context.Context, id Secret) error {
	w := driver.Write{Name: sessionName(id.Reveal()), Delete: true}
	return s.kv.Apply(ctx, sessionsBucket, driver.KVOptions{}, w)[0].Err
}
