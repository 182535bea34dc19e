package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// What another program put into our structures ends neither a listing nor an audit, which tells and mends it, nor a
// consumer.
func TestGarbledStructures(t *testing.T) {
	t.Parallel()
	for name, garble := range map[string]func(ctx context.Context, c *goredis.Client, tag string) error{
		"name of a body": func(ctx context.Context, c *goredis.Client, tag string) error {
			return c.HSet(ctx, tag+"bodies", "x", "y", "007", "y", "-1", "y", "99999999999999999999", "y").Err()
		},
		"score of a segment": func(ctx context.Context, c *goredis.Client, tag string) error {
			return c.ZAdd(ctx, tag+"segments", goredis.Z{Score: 7, Member: "0"}).Err()
		},
		"name of a segment": func(ctx context.Context, c *goredis.Client, tag string) error {
			return c.ZAdd(ctx, tag+"segments", goredis.Z{Score: 0, Member: "x"}, goredis.Z{Score: 1e300, Member: "y"}).Err()
		},
		"timer": func(ctx context.Context, c *goredis.Client, tag string) error {
			later := float64(time.Now().Add(time.Hour).UnixMilli())
			return c.ZAdd(ctx, tag+"g:default:timer", goredis.Z{Score: later, Member: ""},
				goredis.Z{Score: later, Member: "x"}).Err()
		},
		"item of a lane": func(ctx context.Context, c *goredis.Client, tag string) error {
			return c.RPush(ctx, tag+"g:default:lane1", "x").Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newDamaged(t)
			if err := garble(t.Context(), x.c, x.tag); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := x.Browse(ctx, driver.Query{Topic: "jobs", Group: "default", State: driver.StateReady}); err != nil {
				t.Errorf("Browse: %v", err)
			}
			found, err := x.Audit(ctx, "jobs", true)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := x.Audit(ctx, "jobs", false); err != nil || len(again.Problems) > 0 {
				t.Fatalf("found %+v; after the repair still %+v, %v", found.Problems, again.Problems, err)
			}
			page, err := x.Browse(ctx, driver.Query{Topic: "jobs", Group: "default", State: driver.StateReady})
			if err != nil || len(page.Entries) != 6 {
				t.Errorf("Browse after the repair shows %d messages, %v; want 6", len(page.Entries), err)
			}
			x.consume(found)
		})
	}
}

// What a group knew of a message can be garbled: it is delivered again all the same, and counted anew.
func TestGarbledRecords(t *testing.T) {
	t.Parallel()
	x := newDamaged(t)
	for _, suffix := range []string{"state", "history", "chain"} {
		for _, field := range x.c.HKeys(t.Context(), x.tag+"g:default:"+suffix).Val() {
			if err := x.c.HSet(t.Context(), x.tag+"g:default:"+suffix, field, "x").Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for token, record := range x.c.HGetAll(t.Context(), x.tag+"g:default:lease").Val() {
		if err := x.c.HSet(t.Context(), x.tag+"g:default:lease", token, record+"\nx").Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.s.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	ds, err := subscribe(t, x.Driver, "jobs").Receive(t.Context(), 10)
	if err != nil || len(ds) == 0 {
		t.Errorf("Receive: %d deliveries, %v", len(ds), err)
	}
	if _, err := x.Audit(t.Context(), "jobs", true); err != nil {
		t.Errorf("Audit: %v", err)
	}
}

// A timer that nobody knows does not keep the scheduler busy, nor is it counted.
func TestForeignTimerIsRemoved(t *testing.T) {
	t.Parallel()
	x := newDamaged(t)
	timer := x.tag + "g:default:timer"
	if err := x.c.ZAdd(t.Context(), timer, goredis.Z{Score: 1, Member: "x"}).Err(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for x.c.ZScore(t.Context(), timer, "x").Err() == nil {
		if time.Now().After(deadline) {
			t.Fatal("it is still due")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if r, err := x.Audit(t.Context(), "jobs", false); err != nil || len(r.Problems) > 0 {
		t.Errorf("audit: %+v, %v", r.Problems, err)
	}
}

// A listing by time shows all of the many messages that are due in the same millisecond.
func TestBrowseOfOneMoment(t *testing.T) {
	t.Parallel()
	d := open(t, redistest.Shared(t).URL(), namespace())
	closing(t, d)
	const n = 700
	at := time.Now().Add(time.Hour)
	var ms []*driver.Message
	for i := range n {
		ms = append(ms, &driver.Message{ID: fmt.Sprintf("m%d", i), Topic: "jobs", At: at})
	}
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for q := (driver.Query{Topic: "jobs", State: driver.StateDelayed, Limit: 100}); ; {
		page, err := d.Browse(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			seen[e.ID] = true
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if len(seen) != n {
		t.Errorf("seen %d of %d messages", len(seen), n)
	}
}
