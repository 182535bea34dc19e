package redisshell_test

import (
	"context"
	"errors"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/redistest"
)

// Topics are created once, known by the number of parts that the registry has, and looked up again once forgotten. One
// whose parts could not be made is in the registry all the same: it is for its driver to make them when it misses them.
func TestTopics(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: redistest.Single(t, redistest.Options{}).Addr()})
	defer func() { _ = client.Close() }()
	o, err := redisshell.Options{Client: client}.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	s, err := redisshell.Open[*subscription](t.Context(), o, redisshell.Keys{Registry: "{a}:topics", Values: "a:kv/"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context(), func() {}) }()
	var fails error
	made := 0
	topics := redisshell.NewTopics(s, redisshell.TopicKind[int]{Part: "shard",
		New:    func(_ *redisshell.Topic[int], index, _ int) int { return index },
		Create: func(int, context.Context) error { made++; return fails }})

	fails = driver.ErrNotApplied
	if _, err := topics.Ensure(t.Context(), "jobs", 2); !errors.Is(err, driver.ErrNotApplied) {
		t.Error(err)
	}
	fails = nil
	first, err := topics.Ensure(t.Context(), "jobs", 3)
	if err != nil || len(first.Parts) != 2 || made != 1 {
		t.Fatalf("%+v, made %d times, %v", first, made, err)
	}
	if again, err := topics.Lookup(t.Context(), "jobs"); again != first || err != nil {
		t.Errorf("%+v, %v", again, err)
	}
	if err := topics.Resize(t.Context(), first, 4); err != nil {
		t.Error(err)
	}
	topics.Forget(first)
	other, err := topics.Existing(t.Context(), "jobs")
	if err != nil || other == first || len(other.Parts) != 4 {
		t.Errorf("%+v, %v", other, err)
	}
	if same := topics.Learn(topics.Make("jobs", 4)); same != other {
		t.Error("a topic is known twice")
	}
	if names, err := topics.Names(t.Context()); len(names) != 1 || err != nil {
		t.Error(names, err)
	}
	for _, bad := range []string{"many", "0", "2000"} {
		client.HSet(t.Context(), "{a}:topics", "odd", bad)
		if _, err := topics.Lookup(t.Context(), "odd"); !errors.Is(err, driver.ErrConflict) {
			t.Errorf("%s parts: %v", bad, err)
		}
	}
	if err := topics.Remove(t.Context(), other); err != nil {
		t.Error(err)
	}
	if _, err := topics.Existing(t.Context(), "jobs"); !errors.Is(err, driver.ErrNotFound) {
		t.Error(err)
	}
	if _, err := topics.Ensure(t.Context(), "no such name!", 1); !errors.Is(err, driver.ErrInvalid) {
		t.Error(err)
	}
}
