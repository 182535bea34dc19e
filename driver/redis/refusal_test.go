package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// refused demands an error of a kind, whose hint says what to do.
func refused(t *testing.T, what string, err, kind error, hint string) {
	t.Helper()
	var ours *driver.Error
	if !errors.Is(err, kind) || !errors.As(err, &ours) || !strings.Contains(ours.Hint, hint) {
		t.Errorf("%s: got %v, want %v with a hint at %q", what, err, kind, hint)
	}
}

// A node of a cluster, a database that is not there, and a server that is too old are refused when the driver is
// opened.
func TestWrongServersAreRefused(t *testing.T) {
	t.Parallel()
	node := redistest.Cluster(t, redistest.Options{Steady: true}).Nodes[0]
	_, err := redis.New(t.Context(), redis.Options{URL: "redis://" + node.Addr()})
	refused(t, "a node of a cluster", err, driver.ErrInvalid, "redis+cluster://")
	_, err = redis.New(t.Context(), redis.Options{URL: redistest.Shared(t).URL() + "/9999"})
	refused(t, "a database that is not there", err, driver.ErrNotApplied, "answer")

	c := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	defer func() { _ = c.Close() }()
	c.AddHook(hook{process: func(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
		err := next(ctx, cmd)
		if info, ok := cmd.(*goredis.StringCmd); ok && cmd.Name() == "info" {
			info.SetVal("redis_version:6.0.16\r\n")
		}
		return err
	}})
	_, err = redis.New(t.Context(), redis.Options{Client: c})
	refused(t, "Redis 6.0", err, driver.ErrUnsupported, "6.2")
}

// A user who may only read is told so, and nothing is written.
func TestReadOnlyUserIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t, redistest.Options{
		ACL: []string{"user reader on >secret ~* &* +@read +@connection +eval +evalsha +info +time +subscribe"}})
	d, err := redis.New(t.Context(), redis.Options{URL: s.URLAs("reader", "secret")})
	if err == nil {
		closing(t, d)
		_, err = d.Publish(t.Context(), []*driver.Message{{ID: "a", Topic: "jobs"}}, driver.PublishOptions{})
	}
	refused(t, "a user who may only read", err, driver.ErrNotApplied, "permissions")
	if keys, err := s.Command("DBSIZE"); err != nil || keys.Text != "0" {
		t.Errorf("%+v keys, %v; want none", keys, err)
	}
}

// Names that would break the layout of keys are refused, and nothing is written.
func TestWrongNamesAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t, redistest.Options{})
	d := open(t, s.URL(), namespace())
	closing(t, d)
	for _, name := range []string{"a{b}", "a\x00b", "a\nb", "a b", "a:b", "", strings.Repeat("a", 129)} {
		_, err := d.Publish(t.Context(), []*driver.Message{{ID: "a", Topic: name}}, driver.PublishOptions{})
		refused(t, "publish to "+name, err, driver.ErrInvalid, "letters")
		_, err = d.Subscribe(t.Context(), driver.SubscribeOptions{Topic: name, Instance: "tester"})
		refused(t, "subscribe to "+name, err, driver.ErrInvalid, "letters")
	}
	if keys, err := s.Command("DBSIZE"); err != nil || keys.Text != "0" {
		t.Errorf("%+v keys, %v; want none", keys, err)
	}
}

// The number of shards cannot change under a topic, whose keys would then live elsewhere; a topic that is deleted may
// be made anew with another.
func TestShardsCannotChange(t *testing.T) {
	t.Parallel()
	d := openSharded(t, redistest.Shared(t).URL(), namespace(), 2)
	closing(t, d)
	publish(t, d, "jobs", "a")
	four := driver.TopicConfig{Partitions: 4}
	err := d.EnsureTopic(t.Context(), "jobs", four)
	refused(t, "another number of shards", err, driver.ErrConflict, "")
	s := subscribe(t, d, "jobs")
	drain(t, s, 1)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.DeleteTopic(t.Context(), "jobs"); err != nil {
		t.Fatal(err)
	}
	if err := d.EnsureTopic(t.Context(), "jobs", four); err != nil {
		t.Fatalf("after DeleteTopic: %v", err)
	}
	publish(t, d, "jobs", "b")
	drain(t, subscribe(t, d, "jobs"), 1)
}
