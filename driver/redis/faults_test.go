package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/stall"
)

// A server out of memory refuses to publish, and still lets consumers fetch, retry, bury and settle.
func TestFullServerCanBeDrained(t *testing.T) {
	t.Parallel()
	for _, version := range redistest.Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := redistest.Single(t, redistest.Options{Version: version, MaxMemory: "6mb"})
			d := open(t, server.URL(), namespace())
			closing(t, d)
			s := subscribe(t, d, "jobs")
			n := fill(t, d)
			ds, err := s.Receive(t.Context(), 4)
			if err != nil || len(ds) != 4 {
				t.Fatalf("Receive from a full server: %d deliveries, %v", len(ds), err)
			}
			outcomes := []driver.Outcome{driver.Retry, driver.Release, driver.Dead, driver.Drop}
			for i, o := range outcomes {
				f := &driver.Failure{Error: "x"}
				if err := s.Settle(t.Context(), []driver.Settlement{{Delivery: ds[i], Outcome: o, Failure: f}})[0]; err != nil {
					t.Fatalf("Settle %s on a full server: %v", o, err)
				}
			}
			drain(t, s, n-2)
			publish(t, d, "jobs", "there is room again")
		})
	}
}

// fill publishes until the server is full, and returns how many it took.
func fill(t *testing.T, d driver.Driver) int {
	t.Helper()
	body := make([]byte, 16<<10)
	for n := 0; n < 10_000; n++ {
		_, err := d.Publish(t.Context(), []*driver.Message{{ID: rand.Text(), Topic: "jobs", Body: body}},
			driver.PublishOptions{})
		if errors.Is(err, driver.ErrFull) {
			return n
		}
		if err != nil {
			t.Fatalf("Publish to a nearly full server: %v", err)
		}
	}
	t.Fatal("the server is never full")
	return 0
}

// Wake-ups that are lost, because their connection is cut all the time, cost no more than the fallback interval.
func TestLostWakeUps(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	d := open(t, server.URL(), namespace())
	closing(t, d)
	s, machine := subscribe(t, d, "jobs"), stall.Watch(t)
	for i := range 6 {
		if _, err := server.Command("CLIENT", "KILL", "TYPE", "pubsub"); err != nil {
			t.Fatal(err)
		}
		m := &driver.Message{ID: rand.Text(), Topic: "jobs"}
		want := 2 * time.Second
		if i%2 == 1 {
			m.Delay = 100 * time.Millisecond
			want += m.Delay
		}
		start := time.Now()
		if _, err := d.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
		drain(t, s, 1)
		if took := machine.Elapsed(start); took > want {
			t.Errorf("message %d came after %v, later than %v", i, took, want)
		}
	}
}

// What was acknowledged survives kill -9 of a server with an append-only file, and consumers go on by themselves.
func TestServerIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	d := open(t, server.URL(), namespace())
	closing(t, d)
	if c := d.Capabilities(); c.Durability != driver.Synced {
		t.Fatalf("durability %s with appendfsync always", c.Durability)
	}
	s := subscribe(t, d, "jobs")
	publish(t, d, "jobs", "a", "b", "c")
	ds, err := s.Receive(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	if _, err := d.Publish(t.Context(), []*driver.Message{{ID: "x", Topic: "jobs"}},
		driver.PublishOptions{}); !errors.Is(err, driver.ErrNotApplied) && !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("Publish without a server: %v", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	ack(t, s, ds)
	machine, start := stall.Watch(t), time.Now()
	drain(t, s, 2)
	if took := machine.Elapsed(start); took > 2*time.Second {
		t.Errorf("deliveries resumed after %v", took)
	}
}

// A publish at level replicated(1) is not acknowledged when the replica is away.
func TestReplicatedIsChecked(t *testing.T) {
	t.Parallel()
	set := redistest.Sentinel(t, redistest.Options{Steady: true})
	d := open(t, set.URL(), namespace())
	closing(t, d)
	replicated := driver.PublishOptions{Level: driver.Replicated(1)}
	m := &driver.Message{ID: "a", OwnID: true, Topic: "jobs"}
	if _, err := d.Publish(t.Context(), []*driver.Message{m}, replicated); err != nil {
		t.Fatalf("Publish with a replica: %v", err)
	}
	if err := set.Nodes[1].Stop(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Nodes[1].Continue() }()
	m.ID = "b"
	if _, err := d.Publish(t.Context(), []*driver.Message{m}, replicated); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("Publish without a replica: got %v, want ErrUnknown", err)
	}
}

// Wrong addresses, passwords and settings are clear errors, and secrets are in none of them.
func TestBadServersAreRefused(t *testing.T) {
	t.Parallel()
	locked := redistest.Single(t, redistest.Options{Password: "hunter2",
		Config: []string{"maxmemory 100mb", "maxmemory-policy allkeys-lru"}})
	for name, c := range map[string]struct {
		o    redis.Options
		kind error
	}{
		"no password":    {redis.Options{URL: "redis://" + locked.Addr()}, driver.ErrNotApplied},
		"wrong password": {redis.Options{URL: "redis://:canary7@" + locked.Addr()}, driver.ErrNotApplied},
		"eviction":       {redis.Options{URL: locked.URL(), Strict: true}, driver.ErrUnsupported},
		"no server":      {redis.Options{URL: "redis://:canary7@127.0.0.1:1?timeout=200ms"}, driver.ErrNotApplied},
		"not a cluster": {redis.Options{URL: strings.Replace(locked.URL(), "redis://", "redis+cluster://", 1)},
			driver.ErrInvalid},
		"scheme":     {redis.Options{URL: "http://:canary7@host"}, driver.ErrInvalid},
		"port":       {redis.Options{URL: "redis://:canary7@host:port"}, driver.ErrInvalid},
		"database":   {redis.Options{URL: "redis://:canary7@host/x"}, driver.ErrInvalid},
		"parameter":  {redis.Options{URL: "redis://:canary7@host?pol=3"}, driver.ErrInvalid},
		"no primary": {redis.Options{URL: "redis+sentinel://:canary7@host"}, driver.ErrInvalid},
		"prefix":     {redis.Options{URL: locked.URL(), Prefix: "a{b}"}, driver.ErrInvalid},
		"nothing":    {redis.Options{}, driver.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := redis.New(t.Context(), c.o)
			if err == nil {
				_ = d.Close(context.Background())
			}
			var ours *driver.Error
			if !errors.Is(err, c.kind) || !errors.As(err, &ours) || ours.Hint == "" {
				t.Fatalf("got %v, want %v with a hint", err, c.kind)
			}
			if strings.Contains(err.Error(), "canary7") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error contains a secret: %v", err)
			}
		})
	}
}
