package cluster_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/internal/stall"
	"github.com/ferrymq/ferry/open"
)

// child does what FERRY_CHILD says, in a process of its own, until it is killed. It reports false in that of the tests.
func child() bool {
	role, url, _ := strings.Cut(os.Getenv("FERRY_CHILD"), " ")
	if role == "" {
		return false
	}
	ctx := context.Background()
	b, err := open.URL(ctx, url)
	if err == nil {
		err = roles[role](ctx, b)
	}
	fmt.Println("ended:", err)
	return true
}

var roles = map[string]func(ctx context.Context, b *ferry.Broker) error{
	"lead": func(ctx context.Context, b *ferry.Broker) error {
		return cluster.Lead(ctx, b, "alerts", func(ctx context.Context, l *cluster.Lock) error {
			fmt.Println("leads", l.Epoch())
			<-ctx.Done()
			fmt.Println("lost, and its late write is refused:",
				errors.Is(fenced(b, cluster.LeadBucket("alerts"), l.Fence()), ferry.ErrLeaseLost))
			return nil
		})
	},
	"lock": func(ctx context.Context, b *ferry.Broker) error {
		l, err := cluster.Acquire(ctx, b, "report", cluster.LockOptions{TTL: 2 * time.Second})
		if err == nil {
			fmt.Println("holds", l.Epoch())
			<-l.Context().Done()
		}
		return err
	},
	"member": func(ctx context.Context, b *ferry.Broker) error {
		m, err := cluster.Join(b, cluster.Options{Name: "web-1", Beat: time.Second})
		if err == nil {
			fmt.Println("joins")
			err = m.Run(ctx)
		}
		return err
	},
}

// fenced writes under a fence.
func fenced(b *ferry.Broker, bucket string, f *driver.Fence) error {
	return b.Driver().KV().Apply(context.Background(), bucket, driver.KVOptions{},
		driver.Write{Name: "state", Fence: f})[0].Err
}

// process is a child that runs.
type process struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func spawn(t *testing.T, role, url string) *process {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "FERRY_CHILD="+role+" "+url)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return &process{c, bufio.NewScanner(out)}
}

// says waits for the next line, which has to begin so, and returns the rest of it.
func (p *process) says(t *testing.T, prefix string) string {
	t.Helper()
	if !p.lines.Scan() || !strings.HasPrefix(p.lines.Text(), prefix) {
		t.Errorf("it says %q, want %q", p.lines.Text(), prefix)
	}
	return strings.TrimPrefix(p.lines.Text(), prefix)
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// servers returns the URLs of brokers that several processes can open.
func servers(t *testing.T) map[string]string {
	t.Helper()
	run := strings.ToLower(rand.Text()) // with -count the servers are the same
	redis := redistest.Shared(t).URL() + "?prefix=" + run
	return map[string]string{
		"redis":       redis,
		"redisstream": strings.Replace(redis, "redis", "redisstream", 1) + "s",
		"kafka":       "kafka://" + kafkatest.Shared(t).Addrs()[0] + "/?namespace=" + run + ".",
	}
}

func opened(t *testing.T, url string) *ferry.Broker {
	t.Helper()
	b, err := open.URL(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

// A leader that is paused for longer than its TTL is followed by another, and neither acts nor writes when it goes on.
// After kill -9 another leads within the TTL and a second.
func TestLeaderIsPausedAndKilled(t *testing.T) {
	t.Parallel()
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pauseAndKill(t, url)
		})
	}
}

func pauseAndKill(t *testing.T, url string) {
	watch := stall.Watch(t)
	first := spawn(t, "lead", url)
	first.says(t, "leads")
	second := spawn(t, "lead", url)
	within := func(begin time.Time, what string) {
		t.Helper()
		if took := watch.Elapsed(begin); took > cluster.DefaultTTL+time.Second {
			t.Errorf("another led %v after the %s", took, what)
		}
	}
	begin := time.Now()
	first.signal(t, syscall.SIGSTOP)
	second.says(t, "leads")
	within(begin, "pause")
	first.signal(t, syscall.SIGCONT)
	if got := first.says(t, "lost, and its late write is refused: "); got != "true" {
		t.Error("a late leader writes")
	}
	begin = time.Now()
	second.signal(t, syscall.SIGKILL)
	first.says(t, "leads")
	within(begin, "kill")
}

// After kill -9 of the only process that has a directory open, its lock ends as on any broker, and its epoch is never
// met again.
//
// Lesson: L50
func TestHolderOnDiskIsKilled(t *testing.T) {
	t.Parallel()
	url := "disk://" + t.TempDir()
	holder := spawn(t, "lock", url)
	var epoch uint64
	if _, err := fmt.Sscan(holder.says(t, "holds "), &epoch); err != nil {
		t.Fatal(err)
	}
	holder.signal(t, syscall.SIGKILL)
	_ = holder.Wait()
	b := opened(t, url)
	l, err := cluster.Acquire(t.Context(), b, "report", cluster.LockOptions{TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if l.Epoch() <= epoch {
		t.Errorf("epoch %d after %d", l.Epoch(), epoch)
	}
	if err := fenced(b, cluster.DefaultBucket,
		&driver.Fence{Name: "report", Epoch: epoch}); !errors.Is(err, ferry.ErrLeaseLost) {
		t.Errorf("a write under the old epoch: %v", err)
	}
	release(t, l)
}

// A member that was killed is gone after three beats.
func TestMemberIsKilled(t *testing.T) {
	t.Parallel()
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killMember(t, url)
		})
	}
}

func killMember(t *testing.T, url string) {
	b := opened(t, url)
	p := spawn(t, "member", url)
	p.says(t, "joins")
	await(t, func() bool { return names(members(t, b)) == "web-1" })
	watch := stall.Watch(t)
	begin := time.Now()
	p.signal(t, syscall.SIGKILL)
	await(t, func() bool { return names(members(t, b)) == "" })
	if took := watch.Elapsed(begin); took > 4*time.Second {
		t.Errorf("gone after %v", took)
	}
}

// await looks until done holds.
func await(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it never happened")
		}
	}
}
