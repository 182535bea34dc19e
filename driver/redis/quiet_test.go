package redis_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/stall"
)

// looking are the commands of a look after what a lost wake-up left lying: the script, and what it calls.
var looking = map[string]bool{"evalsha": true, "evalsha_ro": true, "time": true, "exists": true}

// besides are the commands that nobody sends for a topic: of new connections, of the survey and the memberships every
// 20 s, of replication, and our own INFO.
var besides = map[string]bool{"ping": true, "replconf": true, "psync": true, "hello": true, "client": true,
	"client|setinfo": true,
	"select":         true, "cluster|slots": true, "info": true, "config|get": true, "zadd": true, "subscribe": true}

// sentTo returns how many commands of each kind servers were sent.
func sentTo(t *testing.T, servers []*redistest.Server) map[string]int {
	t.Helper()
	sent := map[string]int{}
	for _, s := range servers {
		reply, err := s.Command("INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(reply.Text) {
			name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
			calls, _, _ := strings.Cut(rest, ",")
			if n, _ := strconv.Atoi(calls); ok {
				sent[name] += n
			}
		}
	}
	return sent
}

// quiet consumes from so many topics and demands that servers are sent nothing but looks, each of so many commands, and
// each a fallback interval after the last one. A machine that stalls makes them rarer; nothing makes them come sooner.
func quiet(t *testing.T, d driver.Driver, topics, commands int, servers []*redistest.Server) {
	t.Helper()
	closing(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for i := range topics {
		s := subscribe(t, d, fmt.Sprint("topic-", i))
		go func() { _, _ = s.Receive(ctx, 10) }()
	}
	var wrong []string
	for range 5 { // until all consumers wait; until then they claim
		if wrong = noise(t, commands, servers); len(wrong) == 0 {
			return
		}
	}
	t.Error(wrong)
}

// noise waits for four looks, and says what is wrong with them.
func noise(t *testing.T, commands int, servers []*redistest.Server) (wrong []string) {
	t.Helper()
	const looks = 4
	scripts := func(sent map[string]int) int { return sent["evalsha"] + sent["evalsha_ro"] }
	start, before := time.Now(), sentTo(t, servers)
	sent := before
	for ; scripts(sent) < scripts(before)+looks*commands; sent = sentTo(t, servers) {
		time.Sleep(50 * time.Millisecond)
	}
	if took, atLeast := time.Since(start), (looks-1)*redis.DefaultFallback; took < atLeast {
		wrong = append(wrong, fmt.Sprintf("%d looks of %d commands in %v, want %v at least", looks, commands, took, atLeast))
	}
	for kind, n := range sent {
		if n -= before[kind]; n > 0 && !looking[kind] && !besides[kind] {
			wrong = append(wrong, fmt.Sprintf("%d times %s while nothing happened", n, kind))
		}
	}
	return wrong
}

// A consumer of 20 idle topics sends one command in each fallback interval to a single server.
func TestIdleIsQuiet(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	quiet(t, open(t, server.URL(), namespace()), 20, 1, []*redistest.Server{server})
}

// On a cluster it sends one for each topic.
func TestIdleIsQuietOnCluster(t *testing.T) {
	t.Parallel()
	set := redistest.Cluster(t, redistest.Options{Steady: true})
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
	left, before := time.Now(), knocks.n.Load()
	time.Sleep(2 * time.Second) // the passing of time is what is measured
	if n, away := knocks.n.Load()-before, time.Since(left); time.Duration(n)*20*time.Millisecond > away {
		t.Errorf("%d connections were tried in %v, want 20 ms between them at least", n, away)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	machine, back := stall.Watch(t), time.Now()
	direct := open(t, server.URL(), d.Prefix()) // another process, whose wake-up nobody may hear yet
	closing(t, direct)
	publish(t, direct, "jobs", "a")
	x := <-received
	if took := machine.Elapsed(back); took > 2*time.Second {
		t.Errorf("resumed after %v", took)
	}
	ack(t, s, []*driver.Delivery{x})
}
