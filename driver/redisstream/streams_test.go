package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/stall"
)

// Standard tools see the same numbers: what XINFO calls lag and pending is what Stats calls ready, in flight and
// waiting.
func TestXInfoAgreesWithStats(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("host-1", time.Minute)
	w.publish(0, 10, "")
	ds := w.take(s, 4)
	w.settle(s, driver.Retry, ds[0])
	w.settle(s, driver.Ack, ds[1])
	w.publish(10, 15, "")
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	groups, err := w.c.XInfoGroups(w.ctx(), w.stream(0)).Result()
	w.ok(err)
	g := st.Groups[0]
	if len(groups) != 1 || groups[0].Lag != g.Ready || groups[0].Pending != g.Inflight+g.Waiting || groups[0].Lag != 11 {
		t.Errorf("XINFO GROUPS says %+v, Stats says %+v", groups, g)
	}
	pending, err := w.c.XPendingExt(w.ctx(),
		&goredis.XPendingExtArgs{Stream: w.stream(0), Group: "default", Start: "-", End: "+", Count: 100}).Result()
	w.ok(err)
	if len(pending) != 3 || pending[0].Consumer != "host-1" {
		t.Errorf("XPENDING says %+v, want 3 of host-1", pending)
	}
}

// A drained topic leaves nothing of its messages behind.
func TestMemoryReturnsAfterADrain(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("host-1", time.Minute)
	w.publish(0, 100, "")
	w.publish(100, 200, "k")
	for n := 0; n < 200; {
		ds, err := s.Receive(w.ctx(), 50)
		w.ok(err)
		w.settle(s, driver.Ack, ds...)
		n += len(ds)
	}
	keys, err := w.c.Keys(w.ctx(), "{"+w.prefix+"/jobs/0}:*").Result()
	w.ok(err)
	slices.Sort(keys)
	for i, k := range keys {
		keys[i] = k[strings.Index(k, ":")+1:]
	}
	if want := "g:default:busy g:default:fence g:default:flight g:default:group g:default:members g:default:names " +
		"g:default:owner groups ids left meta stream topic"; strings.Join(keys, " ") != want {
		t.Errorf("keys left: %v, want %s", keys, want)
	}
	if n := w.c.XLen(w.ctx(), w.stream(0)).Val(); n != 0 {
		t.Errorf("%d entries left in the stream", n)
	}
	// one field says that it is no list pack
	for _, name := range []string{"g:default:busy", "g:default:flight", "ids", "left", "meta"} {
		if n := w.c.HLen(w.ctx(), strings.TrimSuffix(w.stream(0), "stream")+name).Val(); n != 1 {
			t.Errorf("%s has %d fields, want none of a message", name, n-1)
		}
	}
}

// An entry that another program adds is a message.
func TestForeignProducer(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("host-1", time.Minute)
	id, err := w.c.Do(w.ctx(), "XADD", w.stream(0), "*", "body", "hello", "key", "k", "h:trace", "7", "pri", "1").Text()
	w.ok(err)
	d := w.take(s, 1)[0]
	if string(d.Body) != "hello" || d.Key != "k" || d.Headers["trace"] != "7" || d.Priority != driver.High || d.ID != id {
		t.Errorf("got %+v", d.Message)
	}
	w.settle(s, driver.Ack, d)
	report, err := w.d.Audit(w.ctx(), "jobs", false)
	w.ok(err)
	if len(report.Problems) > 0 {
		t.Errorf("audit: %+v", report.Problems)
	}
}

// A key of ours that another program made is found before anything is written.
func TestForeignKey(t *testing.T) {
	w := newWorld(t)
	w.ok(w.c.Set(w.ctx(), w.stream(3), "mine", 0).Err())
	_, err := w.d.Publish(w.ctx(), []*driver.Message{{ID: "a", Topic: "jobs"}}, driver.PublishOptions{})
	if !errors.Is(err, driver.ErrConflict) {
		t.Errorf("publish beside a string: %v", err)
	}
}

// Partitions move to a member that comes, and back at once when it goes.
func TestRebalance(t *testing.T) {
	w := newWorld(t)
	a := w.subscribe("a", time.Minute)
	if m := distinct(w.owners()); len(m) != 1 || m[""] > 0 {
		t.Fatalf("one member, owners %v", m)
	}
	b, c := w.subscribe("b", time.Minute), w.subscribe("c", time.Minute)
	w.until("three members share fairly", func() bool {
		m := distinct(w.owners())
		if len(m) != 3 || m[""] > 0 {
			return false
		}
		for _, n := range m {
			if n < 2 || n > 3 {
				return false
			}
		}
		return true
	})
	machine, begun := stall.Watch(t), time.Now()
	w.ok(b.Close(w.ctx()))
	w.ok(c.Close(w.ctx()))
	w.until("one member has all", func() bool { m := distinct(w.owners()); return len(m) == 1 && m[""] == 0 })
	if took := machine.Elapsed(begun); took > 5*time.Second { // nobody waited for an ownership to end, which takes ten
		t.Errorf("a planned stop took %v to hand over", took)
	}
	w.publish(0, 40, "")
	w.settle(a, driver.Ack, w.take(a, 40)...)
}

// An owner whose ownership was taken cannot claim any more, also before it knows.
func TestStaleOwnerIsRefused(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	s := w.subscribe("a", time.Minute)
	w.publish(0, 2, "")
	w.settle(s, driver.Ack, w.take(s, 1)...)
	owner := fmt.Sprintf("{%s/jobs/0}:g:default:owner", w.prefix)
	epoch := w.c.HGet(w.ctx(), owner, "epoch").Val()
	w.ok(w.c.HSet(w.ctx(), owner, "member", "another", "epoch", epoch+"1", "until",
		time.Now().Add(time.Hour).UnixMilli()).Err())
	ctx, cancel := context.WithTimeout(w.Context(), 300*time.Millisecond)
	defer cancel()
	if ds, err := s.Receive(ctx, 1); err == nil {
		t.Errorf("a member that is not the owner claimed %v", ds[0].ID)
	}
}

// Consumers that are gone are deleted, but not while something is pending in their name.
func TestConsumersGoWithTheirMembers(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	a := w.subscribe("a", time.Minute)
	w.publish(0, 3, "")
	w.take(a, 3)
	w.ok(a.Close(w.ctx()))
	consumers := func() map[string]int64 {
		m := map[string]int64{}
		list, err := w.c.XInfoConsumers(w.ctx(), w.stream(0), "default").Result()
		w.ok(err)
		for _, c := range list {
			m[c.Name] = c.Pending
		}
		return m
	}
	if m := consumers(); m["a"] != 3 {
		t.Fatalf("consumers %v, want 3 pending for a", m)
	}
	b := w.subscribe("b", time.Minute)
	ds := w.take(b, 3)
	if m := consumers(); m["b"] != 3 {
		t.Errorf("consumers %v, want 3 pending for b, who holds them", m)
	}
	w.settle(b, driver.Ack, ds...)
	w.ok(b.Close(w.ctx()))
	if m := consumers(); len(m) != 0 {
		t.Errorf("consumers left: %v", m)
	}
}

// deaf is a hook that loses the answer to one claim.
type deaf struct {
	quiet
	armed atomic.Bool
}

func (d *deaf) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && len(cmd.Args()) > 16 && d.armed.CompareAndSwap(true, false) { // no other call is so long
			err = os.ErrDeadlineExceeded
			cmd.SetErr(err)
		}
		return err
	}
}

// A claim whose answer did not come costs nothing: what it took is delivered by the next one as if for the first time.
func TestLostAnswerOfAClaim(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	hook := &deaf{}
	d := w.beside(hook)
	s, err := d.Subscribe(w.ctx(), driver.SubscribeOptions{Topic: "jobs", Instance: "a", Lease: time.Minute})
	w.ok(err)
	w.publish(0, 3, "")
	hook.armed.Store(true)
	if _, err := s.Receive(w.ctx(), 3); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("receive from a server that does not answer: %v", err)
	}
	for _, x := range w.take(s, 3) {
		if x.Deliveries != 1 || x.Attempt != 1 || x.Cause != driver.CauseFirst {
			t.Errorf("%s came back with attempt %d, deliveries %d, cause %v", x.ID, x.Attempt, x.Deliveries, x.Cause)
		}
	}
}
