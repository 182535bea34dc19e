package redis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// damaged is a topic with something in every structure, and a client to damage it with.
type damaged struct {
	*testing.T
	driver.Driver
	c   *goredis.Client
	tag string
	s   driver.Subscription
}

func newDamaged(t *testing.T) *damaged {
	prefix := namespace()
	d := open(t, redistest.Shared(t).URL(), prefix)
	closing(t, d)
	c := goredis.NewClient(&goredis.Options{Addr: redistest.Shared(t).Addr()})
	t.Cleanup(func() { _ = c.Close() })
	x := &damaged{T: t, Driver: d, c: c, tag: "{" + prefix + ":jobs:0}:"}
	s, err := d.Subscribe(t.Context(),
		driver.SubscribeOptions{Topic: "jobs", Instance: "tester", Lease: time.Hour, MaxRun: 2})
	if err != nil {
		t.Fatal(err)
	}
	x.s = s
	var ms []*driver.Message
	add := func(m driver.Message) {
		m.ID, m.Topic, m.Body = fmt.Sprintf("m%02d", len(ms)), "jobs", []byte("body")
		ms = append(ms, &m)
	}
	for range 4 {
		add(driver.Message{}) // will be in flight, waiting, dead and released
	}
	for range 3 {
		add(driver.Message{Key: "held"})
	}
	for range 3 {
		add(driver.Message{Key: "free", Priority: driver.Low})
	}
	add(driver.Message{})
	add(driver.Message{Delay: time.Hour})
	add(driver.Message{Delay: driver.Hold})
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	x.settle()
	return x
}

func (x *damaged) settle() {
	var ds []*driver.Delivery
	for len(ds) < 6 {
		got, err := x.s.Receive(x.Context(), 6-len(ds))
		if err != nil {
			x.Fatal(err)
		}
		ds = append(ds, got...)
	}
	for _, d := range ds {
		o := driver.Settlement{Delivery: d, Failure: &driver.Failure{Error: "x"}}
		switch d.ID {
		case "m01":
			o.Outcome, o.After = driver.Retry, time.Hour
		case "m02":
			o.Outcome = driver.Dead
		case "m03":
			o.Outcome = driver.Release
		default:
			continue
		}
		if err := x.s.Settle(x.Context(), []driver.Settlement{o})[0]; err != nil {
			x.Fatal(err)
		}
	}
}

// Every structure is damaged in turn. An audit finds it, repairs it, and finds nothing the second time; then every
// message that still has its body can be consumed.
func TestAuditRepairsEveryStructure(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{
		"ids", "delayed", "held", "pending", "segments", "sizes",
		"g:default:lane1", "g:default:lane0", "g:default:back1", "g:default:chain", "g:default:next", "g:default:timer",
		"g:default:dead", "g:default:lease",
	} {
		for _, how := range []string{"delete", "duplicate", "add"} {
			t.Run(how+" "+suffix, func(t *testing.T) {
				t.Parallel()
				x := newDamaged(t)
				if r, err := x.Audit(t.Context(), "jobs", false); err != nil || len(r.Problems) > 0 {
					t.Fatalf("before: %+v, %v", r.Problems, err)
				}
				if !x.damage(how, x.tag+suffix) {
					t.Skip("there is nothing to damage")
				}
				found, err := x.Audit(t.Context(), "jobs", true)
				if err != nil {
					t.Fatal(err)
				}
				again, err := x.Audit(t.Context(), "jobs", true)
				if err != nil || len(again.Problems) > 0 {
					t.Fatalf("found %+v; after the repair still %+v, %v", found.Problems, again.Problems, err)
				}
				x.consume(found)
			})
		}
	}
}

// damage deletes one entry of a structure, puts it in twice, or adds one of a message that does not exist.
func (x *damaged) damage(how, key string) bool {
	ctx := x.Context()
	kind, err := x.c.Type(ctx, key).Result()
	if err != nil {
		x.Fatal(err)
	}
	if kind == "none" {
		return false
	}
	const ghost = "1999999@1"
	switch kind + " " + how {
	case "list delete":
		err = x.c.LPop(ctx, key).Err()
	case "list duplicate":
		item, _ := x.c.LIndex(ctx, key, rand.Int64N(x.c.LLen(ctx, key).Val())).Result()
		err = x.c.RPush(ctx, key, item).Err()
	case "list add":
		err = x.c.LPush(ctx, key, ghost).Err()
	case "zset delete":
		err = x.c.ZPopMin(ctx, key).Err()
	case "zset add":
		member := "999999"
		if strings.HasSuffix(key, "timer") {
			member = "W999999"
		} else if strings.Contains(key, "back") {
			member = ghost
		}
		err = x.c.ZAdd(ctx, key, goredis.Z{Score: 1e13, Member: member}).Err()
	case "hash delete":
		fields, _ := x.c.HKeys(ctx, key).Result()
		// those only keep the hash from being a list
		fields = slices.DeleteFunc(fields, func(f string) bool { return f == "-" || f == "\x01" })
		err = x.c.HDel(ctx, key, fields[rand.IntN(len(fields))]).Err()
	case "hash add":
		value := ghost
		if strings.HasSuffix(key, "sizes") {
			value = "7"
		} else if strings.HasSuffix(key, "chain") || strings.HasSuffix(key, "lease") {
			return false
		}
		err = x.c.HSet(ctx, key, "999999", value).Err()
	default:
		return false
	}
	if err != nil {
		x.Fatal(err)
	}
	return true
}

// consume demands that every message but the dead one and the held one is delivered once more, whatever was lost.
func (x *damaged) consume(found driver.AuditReport) {
	x.Helper()
	if err := x.s.Close(x.Context()); err != nil {
		x.Fatal(err)
	}
	s := subscribe(x, x.Driver, "jobs")
	for _, id := range []string{"m11", "m12"} {
		_ = x.Move(x.Context(), []driver.Move{{Target: driver.Target{Topic: "jobs", ID: id}}})[0]
	}
	_ = x.Move(x.Context(), []driver.Move{{Target: driver.Target{Topic: "jobs", Group: "default", ID: "m01"}}})[0]
	got := map[string]int{}
	ctx, cancel := context.WithTimeout(x.Context(), time.Minute)
	defer cancel()
	for len(got) < 12 {
		ds, err := s.Receive(ctx, 10)
		if err != nil {
			x.Fatalf("found %+v; delivered only %v: %v", found.Problems, got, err)
		}
		ack(x, s, ds)
		for _, d := range ds {
			got[d.ID]++
		}
	}
	for id, n := range got {
		if n != 1 {
			x.Errorf("%s was delivered %d times", id, n)
		}
	}
	if len(found.Problems) == 0 {
		x.Error("the audit found nothing")
	}
	r, err := x.Audit(x.Context(), "jobs", false)
	if err != nil || len(r.Problems) > 0 {
		x.Errorf("in the end: %+v, %v", r.Problems, err)
	}
}
