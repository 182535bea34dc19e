package redis_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// After everything went through, nothing is left but the topic and its group.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	d := open(t, server.URL(), "base")
	closing(t, d)
	s := subscribe(t, d, "jobs")
	n := 0
	for i := range 300 {
		ms := []*driver.Message{{}, {Key: fmt.Sprint(i % 7)}, {Priority: driver.High}, {TTL: time.Hour},
			{Delay: time.Millisecond}, {OwnID: true}}
		for _, m := range ms {
			m.ID, m.Topic, m.Body = rand.Text(), "jobs", []byte("x")
		}
		if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
		n += len(ms)
	}
	for left := n; left > 0; {
		ds, err := s.Receive(t.Context(), 20)
		if err != nil {
			t.Fatal(err)
		}
		ss := make([]driver.Settlement, len(ds))
		for i, x := range ds {
			ss[i].Delivery = x
			if x.Attempt == 1 && i%3 == 0 {
				ss[i].Outcome, ss[i].Failure = driver.Retry, &driver.Failure{Error: "x"}
			}
		}
		for i, err := range s.Settle(t.Context(), ss) {
			if err == nil && ss[i].Outcome == driver.Ack {
				left--
			} else if err != nil && !errors.Is(err, driver.ErrLeaseLost) {
				t.Fatal(err)
			}
		}
	}
	reply, err := server.Command("KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range reply.List {
		if !strings.Contains(r.Text, ":memory") && !strings.HasSuffix(r.Text, ":requests") { // expire by themselves
			keys = append(keys, r.Text)
		}
	}
	slices.Sort(keys)
	want := []string{"{base:jobs:0}:bodies", "{base:jobs:0}:g:default:group", "{base:jobs:0}:g:default:members",
		"{base:jobs:0}:ids", "{base:jobs:0}:topic", "{base}:topics"}
	if !slices.Equal(keys, want) {
		t.Errorf("keys left: %q, want %q", keys, want)
	}
}

// usedMemory is what the server itself says.
func usedMemory(t *testing.T, s *redistest.Server) int {
	t.Helper()
	reply, err := s.Command("INFO", "memory")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(reply.Text, "used_memory:")
	text, _, _ := strings.Cut(rest, "\r")
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// After a backlog of 50,000 messages went through, the memory of the server is back where it was.
func TestMemoryReturns(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	d, err := redis.New(t.Context(), redis.Options{URL: server.URL(), Fallback: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, d)
	s := subscribe(t, d, "jobs")
	through := func(n int) (most int) {
		ms := make([]*driver.Message, 250)
		for range n / len(ms) {
			for i := range ms {
				ms[i] = &driver.Message{ID: rand.Text(), Topic: "jobs", Body: []byte("x")}
				if i%2 == 0 {
					ms[i].Key = strconv.Itoa(i)
				}
			}
			if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		most = usedMemory(t, server)
		drain(t, s, n)
		return most
	}
	through(1000) // scripts and connections are there now
	base := usedMemory(t, server)
	most := through(50_000)
	const slack = 256 << 10
	if most < base+20*slack {
		t.Fatalf("50,000 messages took %d bytes only: nothing is tested", most-base)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for used := usedMemory(t, server); used > base+slack; used = usedMemory(t, server) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d bytes are left, of %d in between", used-base, most-base)
		}
	}
}

// searching are commands that take longer the more there is.
var searching = []string{"keys", "scan", "lrem", "lpos", "linsert", "smembers", "hgetall", "hkeys", "hvals", "hscan",
	"zscan", "sscan", "sort"}

// Publishing, claiming, settling, promoting and looking after things never search: what one of them costs does not
// depend on how much is in flight or queued.
//
// Lessons: L22, L53
func TestNothingIsSearched(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	d, err := redis.New(t.Context(), redis.Options{URL: server.URL(), Fallback: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, d)
	s := subscribe(t, d, "jobs")
	for i := range 40 {
		ms := []*driver.Message{{}, {Key: fmt.Sprint(i % 3)}, {Priority: driver.High}, {TTL: time.Hour},
			{Delay: time.Millisecond}, {OwnID: true}}
		for _, m := range ms {
			m.ID, m.Topic = rand.Text(), "jobs"
		}
		if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
			t.Fatal(err)
		}
		ds, err := s.Receive(t.Context(), 4)
		if err != nil {
			t.Fatal(err)
		}
		for n, err := range s.Extend(t.Context(), ds) {
			if err != nil {
				t.Fatalf("Extend of delivery %d: %v", n, err)
			}
		}
		for n, x := range ds {
			o := []driver.Outcome{driver.Ack, driver.Retry, driver.Dead, driver.Drop}[(i+n)%4]
			if err := s.Settle(t.Context(),
				[]driver.Settlement{{Delivery: x, Outcome: o, Failure: &driver.Failure{Error: "x"}}})[0]; err != nil {
				t.Fatalf("%s: %v", o, err)
			}
		}
	}
	reply, err := server.Command("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range searching {
		if strings.Contains(reply.Text, "cmdstat_"+name+":") {
			t.Errorf("the server was asked %s", name)
		}
	}
}

// The large tables of a shard that is empty after many messages are given back, and go on to be tables.
func TestLargeTablesAreGivenBack(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	d := open(t, server.URL(), "base")
	closing(t, d)
	s := subscribe(t, d, "jobs")
	publish(t, d, "jobs", make([]string, 600)...)
	drain(t, s, 600)
	deadline := time.Now().Add(time.Minute)
	for sentTo(t, []*redistest.Server{server})["unlink"] < 2 {
		if time.Now().After(deadline) {
			t.Fatal("they are still there")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, name := range []string{"bodies", "ids"} {
		if n, err := server.Command("HLEN", "{base:jobs:0}:"+name); err != nil || n.Text != "1" {
			t.Errorf("%s has %s fields, %v; want the long one", name, n.Text, err)
		}
	}
	publish(t, d, "jobs", "a")
	drain(t, s, 1)
	if report, err := d.Audit(t.Context(), "jobs", false); err != nil || len(report.Problems) > 0 {
		t.Errorf("audit: %+v, %v", report.Problems, err)
	}
}
