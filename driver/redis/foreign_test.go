package redis_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A key of another program under our prefix is refused before anything is written.
func TestForeignKeysAreRefused(t *testing.T) {
	t.Parallel()
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	defer func() { _ = c.Close() }()
	for _, suffix := range []string{"bodies", "delayed", "g:default:lane1", "g:default:chain", "g:default:timer"} {
		prefix := namespace()
		foreign := fmt.Sprintf("{%s:jobs:0}:%s", prefix, suffix)
		if err := c.Set(t.Context(), foreign, "foreign", 0).Err(); err != nil {
			t.Fatal(err)
		}
		d := open(t, redistest.Shared(t).URL(), prefix)
		_, err := d.Publish(t.Context(), []*driver.Message{{ID: "a", Topic: "jobs", Key: "k"}}, driver.PublishOptions{})
		if !errors.Is(err, driver.ErrConflict) || !strings.Contains(err.Error(), foreign) {
			t.Errorf("Publish beside a foreign key %s: got %v, want a conflict that names it", suffix, err)
		}
		keys, err := c.Keys(t.Context(), "{"+prefix+":jobs*").Result()
		for _, k := range keys {
			if k != foreign && !strings.HasSuffix(k, ":topic") {
				t.Errorf("%s was written although %s is foreign", k, suffix)
			}
		}
		if err != nil || d.Close(context.Background()) != nil {
			t.Error("closing failed")
		}
	}
}

// Whichever key somebody else takes while the topic is in use, every call either does not need it, or says so and
// changes nothing.
func TestForeignKeysStopNothingHalfWay(t *testing.T) {
	t.Parallel()
	for _, version := range redistest.Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			stopsNothingHalfWay(t, redistest.Single(t, redistest.Options{Version: version}))
		})
	}
}

func stopsNothingHalfWay(t *testing.T, server *redistest.Server) {
	for _, key := range redis.AllKeys("{x}:", driver.DefaultGroup) {
		suffix := strings.TrimPrefix(key, "{x}:")
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			u := newUsurped(t, server, suffix)
			refused := 0
			for _, name := range slices.Sorted(maps.Keys(u.calls())) {
				refused += u.try(name, u.calls()[name])
			}
			if refused == 0 {
				t.Errorf("no call minds that %s is foreign", suffix)
			}
		})
	}
}

// usurped is a topic of which one key was replaced by a string.
type usurped struct {
	*testing.T
	d      *redis.Driver
	s      driver.Subscription
	c      *goredis.Client
	prefix string
	key    string
	held   []*driver.Delivery
}

func newUsurped(t *testing.T, server *redistest.Server, suffix string) *usurped {
	u := &usurped{T: t, prefix: namespace(), c: goredis.NewClient(&goredis.Options{Addr: server.Addr()})}
	t.Cleanup(func() { _ = u.c.Close() })
	u.d = open(t, server.URL(), u.prefix)
	t.Cleanup(func() { _ = u.d.Close(context.Background()) }) // its subscription may not be able to leave
	s, err := u.d.Subscribe(t.Context(),
		driver.SubscribeOptions{Topic: "jobs", Instance: "tester", Lease: time.Hour, MaxRun: 3})
	if err != nil {
		t.Fatal(err)
	}
	u.s = s
	for i := range 12 {
		m := &driver.Message{ID: fmt.Sprint("m", i), OwnID: i%2 == 0, Topic: "jobs", Key: []string{"", "", "k", "l"}[i%4],
			Priority: driver.Priority(i % 3)}
		if _, err := u.d.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	u.held = take(t, s, 8)
	if err := s.Settle(t.Context(),
		[]driver.Settlement{{Delivery: u.held[7], Outcome: driver.Retry,
			Failure: &driver.Failure{Error: "x"}}})[0]; err != nil {
		t.Fatal(err)
	}
	u.key = fmt.Sprintf("{%s:jobs:0}:%s", u.prefix, suffix)
	if err := u.c.Rename(t.Context(), u.key, "saved-"+u.key).Err(); err != nil &&
		!strings.Contains(err.Error(), "no such key") {
		t.Fatal(err)
	}
	if err := u.c.Set(t.Context(), u.key, "foreign", 0).Err(); err != nil {
		t.Fatal(err)
	}
	return u
}

// calls are those that write.
func (u *usurped) calls() map[string]func() error {
	publish := func(m driver.Message) func() error {
		return func() error {
			m.Topic = "jobs"
			_, err := u.d.Publish(u.Context(), []*driver.Message{&m}, driver.PublishOptions{})
			return err
		}
	}
	settle := func(i int, o driver.Outcome) func() error {
		return func() error {
			return u.s.Settle(u.Context(),
				[]driver.Settlement{{Delivery: u.held[i], Outcome: o, Failure: &driver.Failure{Error: "x"}}})[0]
		}
	}
	return map[string]func() error{
		"publish plain":   publish(driver.Message{ID: "plain"}),
		"publish keyed":   publish(driver.Message{ID: "keyed", Key: "k", OwnID: true, DedupID: "d", DedupWindow: time.Hour}),
		"publish late":    publish(driver.Message{ID: "late", Delay: time.Hour, TTL: 2 * time.Hour}),
		"settle: ack":     settle(0, driver.Ack),
		"settle: retry":   settle(1, driver.Retry),
		"settle: dead":    settle(2, driver.Dead),
		"settle: release": settle(3, driver.Release),
		"settle: drop":    settle(4, driver.Drop),
		"receive":         u.receive,
		"extend":          func() error { return u.s.Extend(u.Context(), u.held[5:6])[0] },
		"delete":          func() error { return u.d.Delete(u.Context(), []driver.Target{{Topic: "jobs", ID: "m11"}})[0] },
		"purge":           func() error { _, err := u.d.Purge(u.Context(), "jobs", ""); return err },
		"pause":           func() error { return u.d.Pause(u.Context(), "jobs", driver.DefaultGroup, false) },
	}
}

func (u *usurped) receive() error {
	ctx, cancel := context.WithTimeout(u.Context(), 30*time.Second)
	defer cancel()
	_, err := u.s.Receive(ctx, 1)
	return err
}

// try makes a call, and returns 1 if it was refused. Then nothing may have changed.
func (u *usurped) try(name string, call func() error) int {
	u.Helper()
	before := u.dump()
	err := call()
	if err == nil || errors.Is(err, driver.ErrLeaseLost) || errors.Is(err, driver.ErrNotFound) {
		return 0
	}
	var ours *driver.Error
	if !errors.As(err, &ours) || !strings.Contains(ours.Hint, "Options.Prefix") {
		u.Errorf("%s: got %v, want an error with a hint", name, err)
	}
	looks := name == "delete" || name == "purge" // at something first, by a command that need not say which key it is
	if !looks && !strings.Contains(err.Error(), u.key+" is a string") {
		u.Errorf("%s: got %v, want an error that names %s", name, err, u.key)
	}
	after := u.dump()
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if before[key] != after[key] {
			u.Errorf("%s was refused and had changed %s", name, key)
		}
	}
	if len(before) != len(after) {
		u.Errorf("%s was refused: there were %d keys and are %d", name, len(before), len(after))
	}
	return 1
}

// dump returns all keys of the topic.
func (u *usurped) dump() map[string]string {
	u.Helper()
	keys, err := u.c.Keys(u.Context(), "{"+u.prefix+":jobs:0}:*").Result()
	if err != nil {
		u.Fatal(err)
	}
	all := map[string]string{}
	for _, key := range keys {
		if all[key], err = u.c.Dump(u.Context(), key).Result(); err != nil {
			u.Fatal(err)
		}
	}
	return all
}
