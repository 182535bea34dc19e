package schedule_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/schedule"
)

// childURL tells the child process its broker.
const childURL = "FERRY_TEST_SCHEDULE_URL"

// killed is how many schedules there are while processes are killed.
const killed = 20

// declare puts the schedules that every process declares when it starts.
func declare(ctx context.Context, s *schedule.Scheduler) (err error) {
	for i := range killed {
		name := fmt.Sprintf("s%02d", i)
		err = errors.Join(err, s.Put(ctx, schedule.Schedule{Name: name, Spec: "@every 1s", Missed: schedule.All, Message: message(name)}))
	}
	return err
}

// runInChild runs schedules until it is killed.
func runInChild() int {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	ctx := context.Background()
	b, err := open.URL(ctx, os.Getenv(childURL))
	if err == nil {
		var s *schedule.Scheduler
		if s, err = schedule.New(b, schedule.Options{}); err == nil {
			if err = declare(ctx, s); err == nil {
				fmt.Println("running")
				err = s.Run(ctx)
			}
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// child starts a process that runs schedules, and returns what kills it, once it runs.
func child(t *testing.T, url string) (kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), childURL+"="+url)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() || lines.Text() != "running" {
		t.Fatalf("the child says %q", lines.Text())
	}
	return func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
}

// Each tick fires exactly once, however often whoever runs schedules is killed.
func TestKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	prefix := "?prefix=k" + rand.Text()
	kafka := "kafka://" + kafkatest.Single(t).Addrs()[0] + "/?transactions=true&partitions=2&internal_partitions=1&namespace=k" + strings.ToLower(rand.Text()) + "."
	for _, c := range []struct {
		name, url string
		processes int // at once
	}{
		{"kafka", kafka, 2},
		{"disk", "disk://" + t.TempDir(), 1},
		{"redis", server.URL() + prefix, 3},
		{"redisstream", strings.Replace(server.URL(), "redis", "redisstream", 1) + prefix + "&partitions=2", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			underKill(t, c.url, c.processes)
		})
	}
}

func underKill(t *testing.T, url string, processes int) {
	const kills = 6
	var living []func()
	for range processes - 1 {
		living = append(living, child(t, url))
	}
	for range kills {
		living = append(living, child(t, url))
		time.Sleep(time.Duration(200+mathrand.IntN(1200)) * time.Millisecond) // a kill may come at any moment
		living[0]()
		living = living[1:]
	}
	for _, kill := range living {
		kill()
	}
	ctx := t.Context()
	b, err := open.URL(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close(context.Background()) }()
	s, err := schedule.New(b, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	catchUp(t, s, begun)
	judge(t, b, begun)
}

// catchUp runs schedules until all are beyond a time.
func catchUp(t *testing.T, s *schedule.Scheduler, beyond time.Time) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for behind := killed; behind > 0; {
		time.Sleep(50 * time.Millisecond)
		p, err := s.List(ctx, schedule.Query{})
		if err != nil {
			t.Fatal(err)
		}
		behind = killed
		for _, st := range p.Schedules {
			if st.Next.After(beyond) {
				behind--
			}
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// judge demands that every schedule fired at each second from its first tick until a time, once.
func judge(t *testing.T, b *ferry.Broker, until time.Time) {
	t.Helper()
	ticks, count := map[string][]time.Time{}, 0
	for q := (driver.Query{Topic: topic, Group: driver.DefaultGroup, State: driver.StateReady, Limit: 1000}); ; {
		p, err := b.Driver().Browse(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Entries {
			tick, err := time.Parse(time.RFC3339, e.Headers[schedule.HeaderTick])
			if err != nil {
				t.Fatal(err)
			}
			if tick.After(e.PublishedAt) {
				t.Errorf("tick %s of %s fired early, at %s", tick, e.Headers[schedule.HeaderName], e.PublishedAt)
			}
			ticks[e.Headers[schedule.HeaderName]] = append(ticks[e.Headers[schedule.HeaderName]], tick)
			count++
		}
		if q.Cursor = p.Next; p.Next == "" {
			break
		}
	}
	if len(ticks) != killed {
		t.Fatalf("%d schedules fired", len(ticks))
	}
	t.Logf("%d fires", count)
	for name, list := range ticks {
		seen := map[time.Time]bool{}
		first := list[0]
		for _, tick := range list {
			if seen[tick] {
				t.Errorf("%s fired twice at %s", name, tick)
			}
			seen[tick] = true
			if tick.Before(first) {
				first = tick
			}
		}
		for tick := first; tick.Before(until.Truncate(time.Second)); tick = tick.Add(time.Second) {
			if !seen[tick] {
				t.Errorf("%s did not fire at %s", name, tick)
			}
		}
	}
}
