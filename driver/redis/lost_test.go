package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// What it costs the server that leases run out is proportional to what was in them, although extensions have split them
// and others hold much: 4 times as many messages may cost 4 times as much, not 16.
func TestLostLeasesCostWhatWasInThem(t *testing.T) {
	for try := 1; ; try++ { // who shares its processor needs more of it, by chance
		few, many := costOfLosing(t, 500), costOfLosing(t, 2000)
		t.Logf("losing 500 took %v of the server, losing 2,000 %v", few, many)
		if many <= 9*few {
			return
		}
		if try == 3 {
			t.Fatal("that is too much, three times in a row")
		}
	}
}

// costOfLosing returns the CPU time of a server for n messages whose leases run out, while another subscription holds
// as many.
func costOfLosing(t *testing.T, n int) time.Duration {
	t.Helper()
	server, ns := redistest.Single(t, redistest.Options{}), namespace()
	d := open(t, server.URL(), ns)
	defer func() { _ = d.Close(context.Background()) }()
	msgs := make([]*driver.Message, 2*n)
	for i := range msgs {
		msgs[i] = &driver.Message{ID: fmt.Sprint(i), Topic: "jobs", Key: fmt.Sprint("k", i/4)}
	}
	if err := d.EnsureGroup(t.Context(), "jobs", driver.DefaultGroup, driver.GroupOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Publish(t.Context(), msgs, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	holding(t, d, "loser", n)
	timer := "{" + ns + ":jobs:0}:g:" + driver.DefaultGroup + ":timer"
	leases, err := server.Command("ZRANGE", timer, "0", "-1")
	if err != nil || len(leases.List) < 2 {
		t.Fatalf("there are %d leases, %v; want one that was split", len(leases.List), err)
	}
	holding(t, d, "other", n)
	before := serverCPU(t, server)
	for _, lease := range leases.List {
		if _, err := server.Command("ZADD", timer, "1", lease.Text); err != nil {
			t.Fatal(err)
		}
	}
	holding(t, d, "heir", n)
	return serverCPU(t, server) - before
}

// holding makes a subscription hold nearly n messages, every second of them in a lease that was split off.
func holding(t *testing.T, d driver.Driver, instance string, n int) {
	t.Helper()
	s, err := d.Subscribe(t.Context(),
		driver.SubscribeOptions{Topic: "jobs", Instance: instance, Lease: time.Hour, MaxRun: 4, MaxInflight: n})
	if err != nil {
		t.Fatal(err)
	}
	var held, some []*driver.Delivery
	for len(held) < n*9/10 { // the rest of a run for which a claim had no room waits
		ds, err := s.Receive(t.Context(), n-len(held))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, ds...)
	}
	for i := 0; i < len(held); i += 2 {
		some = append(some, held[i])
	}
	for _, err := range s.Extend(t.Context(), some) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// serverCPU returns how much a server has computed.
func serverCPU(t *testing.T, server *redistest.Server) time.Duration {
	t.Helper()
	reply, err := server.Command("INFO", "cpu")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(reply.Text, "used_cpu_user:")
	line, _, _ := strings.Cut(rest, "\r\n")
	seconds, err := strconv.ParseFloat(line, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(seconds * float64(time.Second))
}
