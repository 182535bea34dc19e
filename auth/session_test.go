package auth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// login makes ann, and a session of hers.
func login(t *testing.T, b *ferry.Broker) (*Sessions, Secret) {
	t.Helper()
	putAnn(t, NewUsers(b))
	s := NewSessions(b, SessionOptions{})
	id, err := s.Start(context.Background(), &Identity{Name: "ann", Kind: KindUser})
	if err != nil {
		t.Fatal(err)
	}
	return s, id
}

func over(t *testing.T, s *Sessions, id Secret, why string) {
	t.Helper()
	if i, err := s.Find(context.Background(), id); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("%s: %v, %v", why, i, err)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	b, ctx := broker(t), context.Background()
	s, id := login(t, b)
	i, err := NewSessions(b, SessionOptions{}).Find(ctx, id) // of another server
	if err != nil || i.String() != "user ann" || !i.May(Operate, "orders.eu") {
		t.Fatalf("%+v, %v", i, err)
	}
	values, _ := b.Driver().KV().List(ctx, driver.KVQuery{Bucket: sessionsBucket})
	if v := values.Values[0]; strings.Contains(v.Name+string(v.Data), id.Reveal()) {
		t.Error("the id of the session lies in the broker")
	}
	over(t, s, NewSecret(values.Values[0].Name), "the name of the value is good as an id")
	over(t, s, Secret{}, "no id")
	if err := s.End(ctx, id); err != nil {
		t.Fatal(err)
	}
	over(t, s, id, "a session that was ended")
}

// TestSessionFollowsItsUser: what is taken from a user is taken from its sessions at once.
func TestSessionFollowsItsUser(t *testing.T) {
	t.Parallel()
	b, ctx := broker(t), context.Background()
	s, id := login(t, b)
	u := NewUsers(b)
	if err := u.Put(ctx, User{Name: "ann", Grants: []Grant{{Role: Viewer}}}, Secret{}); err != nil {
		t.Fatal(err)
	}
	if i, err := s.Find(ctx, id); err != nil || i.May(Operate, "orders.eu") {
		t.Errorf("the role was taken away: %+v, %v", i, err)
	}
	putAnn(t, u) // sets the password again
	over(t, s, id, "the password was changed")
	id, err := s.Start(ctx, &Identity{Name: "ann", Kind: KindUser})
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Delete(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	over(t, s, id, "the user was removed")
	putAnn(t, u)
	over(t, s, id, "another user of the name")
}

func TestSessionOfSomebodyElse(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), NewSessions(broker(t), SessionOptions{})
	id, err := s.Start(ctx, &Identity{Name: "bob@example.com", Kind: KindOIDC, Grants: []Grant{{Role: Viewer}}})
	if err != nil {
		t.Fatal(err)
	}
	if i, err := s.Find(ctx, id); err != nil || i.String() != "oidc bob@example.com" || !i.May(View, "orders") ||
		i.May(Operate, "orders") {
		t.Errorf("%+v, %v", i, err)
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, ctx := broker(t), context.Background()
		s := NewSessions(b, SessionOptions{})
		start := func() Secret {
			id, err := s.Start(ctx, &Identity{Name: "x", Kind: KindLocal, Grants: []Grant{{Role: Viewer}}})
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		idle, used := start(), start()
		for begin := time.Now(); time.Since(begin) < SessionMax-time.Hour; {
			time.Sleep(SessionIdle - time.Minute)
			if _, err := s.Find(ctx, used); err != nil {
				t.Fatalf("after %v of use: %v", time.Since(begin), err)
			}
		}
		over(t, s, idle, "an idle session")
		time.Sleep(time.Hour + time.Minute)
		over(t, s, used, "a session that was used for a day")
	})
}

// TestSessionIsTouchedOnceAMinute: a console that asks each second does not write each second.
func TestSessionIsTouchedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, ctx := broker(t), context.Background()
		s := NewSessions(b, SessionOptions{Max: time.Hour}) // less than Idle: the TTL is always short of it
		id, err := s.Start(ctx, &Identity{Name: "x", Kind: KindLocal})
		if err != nil {
			t.Fatal(err)
		}
		revisions := map[uint64]bool{}
		for range 10 * 60 {
			time.Sleep(time.Second)
			if _, err := s.Find(ctx, id); err != nil {
				t.Fatal(err)
			}
			values, _ := b.Driver().KV().List(ctx, driver.KVQuery{Bucket: sessionsBucket})
			revisions[values.Values[0].Revision] = true
		}
		if n := len(revisions); n < 9 || n > 11 {
			t.Errorf("%d writes in ten minutes", n)
		}
	})
}
