package redisstream_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

var everyState = []driver.State{driver.StateDelayed, driver.StateHeld, driver.StateReady, driver.StateInflight,
	driver.StateWaiting, driver.StateDead,
	driver.StateInvalid, driver.StateDone}

// garble puts values into a structure that cannot be read, or members and scores that do not fit each other. It tells
// whether there was something to garble.
func (w *world) garble(how, name string) bool {
	ctx, key := w.ctx(), w.part(name)
	switch kind := w.c.Type(ctx, key).Val(); {
	case kind == "hash" && how == "value":
		fields := slices.DeleteFunc(slices.Sorted(maps.Keys(w.c.HGetAll(ctx, key).Val())), func(f string) bool {
			return f == ""
		})
		if len(fields) == 0 {
			return false
		}
		w.ok(w.c.HSet(ctx, key, fields[0], "rubbish").Err())
	case kind == "hash" && how == "member":
		w.ok(w.c.HSet(ctx, key, "rubbish", "rubbish").Err())
	case kind == "zset" && how == "score":
		for _, m := range w.c.ZRange(ctx, key, 0, -1).Val() {
			w.ok(w.c.ZAdd(ctx, key, goredis.Z{Score: 9e15, Member: m}).Err())
		}
	case kind == "zset" && how == "member":
		w.ok(w.c.ZAdd(ctx, key, goredis.Z{Score: 9e12, Member: "rubbish"}).Err())
	case kind == "set" && how == "member":
		w.ok(w.c.SAdd(ctx, key, "rubbish").Err())
	default:
		return false
	}
	return true
}

// ends demands that every listing comes to an end.
func (w *world) ends() {
	w.Helper()
	for _, state := range everyState {
		q := driver.Query{Topic: "jobs", Group: "default", State: state, Limit: 2}
		for range 1000 {
			page, err := w.d.Browse(w.ctx(), q)
			if w.ok(err); page.Next == "" {
				break
			}
			if page.Next == q.Cursor {
				w.Fatalf("Browse of %s does not come beyond %q", state, q.Cursor)
			}
			q.Cursor = page.Next
		}
	}
	_, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
}

// Whatever another program writes into our structures, listings end, and an audit mends it.
func TestGarbledValuesAreMended(t *testing.T) {
	t.Parallel()
	for _, name := range spoilable {
		for _, how := range []string{"value", "member", "score"} {
			t.Run(how+" of "+name, func(t *testing.T) {
				w, s := everything(t, time.Hour)
				if !w.garble(how, name) {
					return
				}
				w.ends()
				w.mends(how == "member")
				w.ends()
				w.ok(s.Close(w.ctx()))
				w.drain(name)
			})
		}
	}
}

// What is counted or noted of a whole partition is found and mended when it is no number, or no id of an entry.
func TestGarbledCountersAreMended(t *testing.T) {
	t.Parallel()
	fields := map[string]string{
		"topic":           "messages bytes published fanned expired cancelled seq next last prio",
		"g:default:group": "received acked dropped expired cancelled redelivered graves pass pass0 pass1 last since",
	}
	for hash, names := range fields {
		for _, field := range strings.Fields(names) {
			t.Run(hash+" "+field, func(t *testing.T) {
				w, s := everything(t, time.Hour)
				w.ok(w.c.HSet(w.ctx(), w.part(hash), field, "rubbish").Err())
				w.mends(field != "next") // which is reckoned anew whenever it is looked at
				w.ends()
				w.ok(s.Close(w.ctx()))
				w.drain("")
			})
		}
	}
}

// A registry that another program has written to does not bring the process down.
func TestGarbledRegistry(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"0", "-1", "1.5", "rubbish", "1000000000"} {
		t.Run(n, func(t *testing.T) {
			w := newWorld(t)
			w.ok(w.c.HSet(w.ctx(), fmt.Sprintf("{%s}/topics", w.prefix), "jobs", n).Err())
			_, err := w.d.Publish(w.ctx(), []*driver.Message{{ID: "a", Topic: "jobs"}}, driver.PublishOptions{})
			if !errors.Is(err, driver.ErrConflict) {
				t.Errorf("Publish: %v, want ErrConflict", err)
			}
			if _, err := w.d.Stats(w.ctx(), "jobs"); !errors.Is(err, driver.ErrConflict) {
				t.Errorf("Stats: %v, want ErrConflict", err)
			}
		})
	}
}

// A lane may offer a message that its key does not have, or whose key waits: a random history met a claim that then
// named no message to a command, which the server refuses, so that nobody got anything any more.
func TestKeyIsOfferedWithoutItsFirst(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s, err := w.d.Subscribe(w.ctx(), driver.SubscribeOptions{Topic: "jobs", Instance: "a", Lease: time.Hour, MaxRun: 2})
	w.ok(err)
	w.publish(0, 2, "k")
	w.settle(s, driver.Retry, w.take(s, 2)[0]) // for an hour: the key waits, with the second message behind it
	seat, _ := strings.CutPrefix(w.c.ZRange(w.ctx(), w.part("g:default:chain"), 1, 1).Val()[0], "1:k/")
	w.ok(w.c.ZAdd(w.ctx(), w.part("g:default:lane1"), goredis.Z{Member: seat}).Err())
	w.publish(2, 3, "j")
	if got := w.take(s, 1); got[0].Key != "j" {
		t.Errorf("%s came, although its key waits", got[0].ID)
	}

	w.publish(3, 4, "i")
	w.ok(s.Settle(w.ctx(), []driver.Settlement{{Delivery: w.take(s, 1)[0], Outcome: driver.Release}})[0])
	w.ok(w.c.Del(w.ctx(), w.part("g:default:chain")).Err())
	if got := w.take(s, 1); got[0].Key != "i" {
		t.Errorf("%s came, want the message that is offered", got[0].ID)
	}
}
