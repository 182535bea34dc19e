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

// uncounted are the commands that our scripts call while nothing happens, which nobody sends, and those of replication.
var uncounted = map[string]bool{"time": true, "exists": true, "ping": true, "replconf": true, "psync": true}

// sentTo returns how many commands a server was sent.
func sentTo(t *testing.T, s *redistest.Server) int {
	t.Helper()
	reply, err := s.Command("INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for line := range strings.Lines(reply.Text) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		calls, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.Atoi(calls)
		if ok && !uncounted[name] {
			sum += n
		}
	}
	return sum
}

// quiet consumes from so many topics and demands that all servers together are sent no more than limit commands a second. While
// connections and scripts are new there are more, and on a busy machine that takes its time, so it may try again.
func quiet(t *testing.T, d driver.Driver, topics int, limit float64, servers []*redistest.Server) {
	t.Helper()
	closing(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for i := range topics {
		s := subscribe(t, d, fmt.Sprint("topic-", i))
		go func() { _, _ = s.Receive(ctx, 10) }()
	}
	count := func() (sum int) {
		for _, s := range servers {
			sum += sentTo(t, s)
		}
		return sum
	}
	const seconds, tries = 4, 3
	var rates []float64
	for range tries {
		time.Sleep(2 * time.Second) // until all have settled down; the passing of time is what is measured
		before := count()
		time.Sleep(seconds * time.Second)
		rate := float64(count()-before-len(servers)) / seconds // without our own INFO
		if rates = append(rates, rate); rate <= limit {
			return
		}
	}
	t.Errorf("%.1f commands a second, want at most %v", rates, limit)
}

// A consumer of 20 idle topics sends no more than five commands a second to a single server.
func TestIdleIsQuiet(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	quiet(t, open(t, server.URL(), namespace()), 20, 5, []*redistest.Server{server})
}

// On a cluster it sends no more than one command a second for each shard.
func TestIdleIsQuietOnCluster(t *testing.T) {
	t.Parallel()
	set := redistest.Cluster(t, redistest.Options{})
	quiet(t, open(t, set.URL(), namespace()), 20, 20, set.Nodes)
}

// When the server comes back, a waiting consumer goes on within two seconds; until then it does not knock all the time.
func TestReconnectResumesQuietly(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	knocks := &doorbell{addr: server.Addr()}
	d := knocks.open(t)
	closing(t, d)
	s := subscribe(t, d, "jobs")
	received := make(chan *driver.Delivery)
	go func() {
		for {
			ds, err := s.Receive(t.Context(), 1)
			if err == nil {
				received <- ds[0]
				return
			}
			if t.Context().Err() != nil {
				return
			}
			time.Sleep(20 * time.Millisecond) // the back-off of a worker
		}
	}()
	server.Kill()
	before := knocks.n.Load()
	const away = 2 * time.Second
	time.Sleep(away) // the passing of time is what is measured
	if n := knocks.n.Load() - before; n > 100 {
		t.Errorf("%d connections were tried in %v", n, away)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	direct := open(t, server.URL(), d.Prefix()) // another process, whose wake-up nobody may hear yet
	closing(t, direct)
	publish(t, direct, "jobs", "a")
	x := <-received
	if took := time.Since(back); took > 2*time.Second {
		t.Errorf("resumed after %v", took)
	}
	ack(t, s, []*driver.Delivery{x})
}
