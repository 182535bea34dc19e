package redisstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/redistest"
)

// commands is how many commands a server has run so far, those that scripts call included.
func commands(t *testing.T, server *redistest.Server) (n int) {
	t.Helper()
	reply, err := server.Command("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(reply.Text) {
		if _, rest, ok := strings.Cut(line, ":calls="); ok {
			var calls int
			if _, err := fmt.Sscanf(rest, "%d,", &calls); err != nil {
				t.Fatal(err)
			}
			n += calls
		}
	}
	return n
}

// What a group does costs about the same whatever other groups there are: a hundred of them that each looked at all
// keys of all others, every time they said that they live, left a server no time for anything else.
func TestOtherGroupsCostLittle(t *testing.T) {
	t.Parallel()
	const more, each = 60, 16 // commands for each of them in all calls together; one look at all its keys is 25
	server := redistest.Single(t, redistest.Options{})
	w := worldOn(t, server)
	w.onePartition()
	round := func(id int) int {
		before := commands(t, server)
		s := w.subscribe("a", time.Hour)
		w.publish(id, id+1, "")
		w.ok(s.Settle(w.ctx(), []driver.Settlement{{Delivery: w.take(s, 1)[0], Outcome: driver.Release}})[0])
		ds := w.take(s, 1)
		w.ok(errors.Join(s.Extend(w.ctx(), ds)...))
		w.settle(s, driver.Ack, ds...)
		w.ok(s.Drain(w.ctx()))
		w.ok(s.Close(w.ctx()))
		return commands(t, server) - before
	}
	alone := round(0)
	for i := range more {
		w.ok(w.d.EnsureGroup(w.ctx(), "jobs", fmt.Sprint("group-", i), driver.GroupOptions{}))
	}
	if beside := round(1); beside > alone+more*each {
		t.Errorf("a round took %d commands, and %d beside %d other groups", alone, beside, more)
	}
}

// Claims wait for each other, and what keeps leases and ownership does not wait for them, however many groups claim.
func TestRenewalsDoNotWaitForClaims(t *testing.T) {
	const lease, groups, connections = 30 * time.Second, 12, 4
	w := newWorld(t)
	w.onePartition()
	slow := redistest.NewWithheld()
	o, err := goredis.ParseURL(w.url)
	w.ok(err)
	o.Dialer, o.PoolSize, o.PipelinePoolSize, o.ReadTimeout = slow.Dial, connections, -1, -1
	client := goredis.NewClient(o)
	d, err := redisstream.New(w.ctx(), redisstream.Options{Client: client, Prefix: w.prefix})
	w.ok(err)
	t.Cleanup(func() { w.ok(errors.Join(d.Close(context.Background()), client.Close())) })
	subs := make([]driver.Subscription, groups)
	for i := range subs {
		subs[i], err = d.Subscribe(w.ctx(),
			driver.SubscribeOptions{Topic: "jobs", Group: fmt.Sprint("g", i), Instance: "a", Lease: lease})
		w.ok(err)
	}
	w.publish(0, 1, "")
	held := w.take(subs[0], 1)
	slow.Hold(d.ClaimWord())
	w.publish(1, 2, "")
	var claiming sync.WaitGroup
	t.Cleanup(claiming.Wait)
	t.Cleanup(slow.Release)
	for _, s := range subs[1:] {
		claiming.Go(func() { _, _ = s.Receive(w.ctx(), 1) })
	}
	for range connections / 2 {
		<-slow.Stuck()
	}
	for range 20 {
		ctx, cancel := context.WithTimeout(w.ctx(), lease/6)
		err := subs[0].Extend(ctx, held)[0]
		if cancel(); err != nil {
			t.Fatalf("a lease is not extended while claims wait: %v", err)
		}
	}
	for i := range subs { // a word of members has each look at once
		key := w.part(fmt.Sprintf("g:g%d:owner", i))
		until := w.c.HGet(w.ctx(), key, "until").Val()
		w.ok(w.c.Publish(w.ctx(), w.part("topic"), fmt.Sprintf("!g%d", i)).Err())
		w.until("ownership is renewed", func() bool { return w.c.HGet(w.ctx(), key, "until").Val() != until })
	}
	if n := slow.Waiting(); n > connections/2 {
		t.Errorf("claims have %d of %d connections", n, connections)
	}
}

// A claim of much reads in a transaction, and so has a connection of its own. It needs no second one, or as many as
// there are connections would wait for each other.
func TestClaimOfMuchNeedsOneConnection(t *testing.T) {
	w := newWorld(t)
	w.onePartition()
	d := open(t, w.url+"?pool=1", w.prefix)
	t.Cleanup(func() { w.ok(d.Close(context.Background())) })
	s, err := d.Subscribe(w.ctx(), driver.SubscribeOptions{Topic: "jobs", Instance: "a", Lease: time.Hour})
	w.ok(err)
	w.publish(0, 100, "")
	w.ok(w.c.Do(w.ctx(), "XADD", w.stream(0), "*", "v", "1", "id", "spoilt", "c", "wrong", "body", "x").Err())
	w.publish(100, 200, "")
	w.take(s, 16) // there is more, so that the next time it reads itself
	if ds, err := s.Receive(w.ctx(), 184); err != nil || len(ds) < 100 {
		t.Fatalf("%d came, %v", len(ds), err)
	}
	w.until("the one that cannot be decoded is with the parse errors", func() bool {
		st, err := w.d.Stats(w.ctx(), "jobs")
		w.ok(err)
		return st.Invalid == 1
	})
}
