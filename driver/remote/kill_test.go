package remote_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/driver/remote"
	"github.com/ferrymq/ferry/gateway"
	"github.com/ferrymq/ferry/internal/redistest"
)

// serveVariable makes this test program a server: "disk <dir> <address>" or "redis <url> <address>", or "dying-disk".
const serveVariable = "FERRY_TEST_SERVE"

// serveIfAsked serves until the process is killed.
func serveIfAsked() {
	what := strings.Fields(os.Getenv(serveVariable))
	if len(what) != 3 {
		return
	}
	if err := serveProcess(what[0], what[1], what[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

func serveProcess(kind, where, address string) error {
	quiet := ferry.Options{Logger: slog.New(slog.DiscardHandler)}
	var b *ferry.Broker
	var err error
	if strings.HasSuffix(kind, "disk") {
		b, err = disk.Open(context.Background(), disk.Options{Dir: where, Logger: quiet.Logger, Broker: quiet})
	} else {
		b, err = redis.Open(context.Background(), redis.Options{URL: where, Logger: quiet.Logger, Broker: quiet})
	}
	if err != nil {
		return err
	}
	g, err := gateway.New(b, gateway.Options{})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	h := as(operator(), g)
	if strings.HasPrefix(kind, "dying") {
		h = dying(h)
	}
	fmt.Println(l.Addr()) // it is ready
	return http.Serve(l, h)
}

// process is a server that can be killed and started again at its address.
type process struct {
	kind, where, address string
	cmd                  *exec.Cmd
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), serveVariable+"="+strings.Join([]string{p.kind, p.where, p.address}, " "))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	p.address = strings.TrimSpace(line)
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// A server is killed again and again while one client publishes and another consumes: what was acknowledged is handled,
// and nothing that was not published.
func TestServerIsKilled(t *testing.T) {
	t.Run("disk", func(t *testing.T) {
		t.Parallel()
		killAndCount(t, &process{kind: "disk", where: t.TempDir(), address: "127.0.0.1:0"})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server := redistest.Single(t, redistest.Options{})
		killAndCount(t, &process{kind: "redis", where: server.URL(), address: "127.0.0.1:0"})
	})
}

const kills, messages = 3, 300

func killAndCount(t *testing.T, p *process) {
	p.start(t)
	defer func() { p.kill() }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	d, err := remote.New(ctx, remote.Options{URL: "ferry://" + p.address})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close(context.Background()) }()
	c := &consumer{handled: map[string]int{}, progress: make(chan int, messages*10)}
	consuming, stop := context.WithCancel(ctx)
	var under sync.WaitGroup
	under.Go(func() { c.run(consuming, t, d) })
	under.Go(func() { publishAll(ctx, t, d) })
	for i := range kills {
		c.until(ctx, t, (i+1)*messages/(kills+2))
		p.kill()
		p.start(t)
	}
	c.until(ctx, t, messages)
	stop()
	under.Wait()
	t.Logf("%d messages were handled more than once", c.twice())
}

// publishAll publishes every message, again until it is acknowledged. The id makes that safe.
func publishAll(ctx context.Context, t *testing.T, d driver.Driver) {
	for i := range messages {
		m := &driver.Message{ID: fmt.Sprintf("m%d", i), OwnID: true, Topic: "jobs"}
		for {
			_, err := d.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{})
			if err == nil {
				break
			}
			if !errors.Is(err, driver.ErrUnknown) && !errors.Is(err, driver.ErrNotApplied) {
				t.Errorf("Publish: %v", err)
				return
			}
			pause(ctx)
		}
	}
}

// pause waits a moment before a server that is away is asked again.
func pause(ctx context.Context) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
	}
}

// consumer counts what it has handled.
type consumer struct {
	mu       sync.Mutex
	handled  map[string]int
	progress chan int // how many different ones
}

func (c *consumer) run(ctx context.Context, t *testing.T, d driver.Driver) {
	var s driver.Subscription
	for s == nil && ctx.Err() == nil {
		var err error
		if s, err = d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: "test",
			Lease: time.Second}); err != nil {
			s = nil
			pause(ctx)
		}
	}
	for ctx.Err() == nil {
		ds, err := s.Receive(ctx, 10)
		if err != nil {
			pause(ctx)
			continue
		}
		c.note(t, ds)
		var ss []driver.Settlement
		for _, d := range ds {
			ss = append(ss, driver.Settlement{Delivery: d})
		}
		s.Settle(ctx, ss) // what it does not take is delivered again
	}
}

func (c *consumer) note(t *testing.T, ds []*driver.Delivery) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range ds {
		if !strings.HasPrefix(d.ID, "m") {
			t.Errorf("%s was never published", d.ID)
		}
		if c.handled[d.ID]++; c.handled[d.ID] == 1 {
			c.progress <- len(c.handled)
		}
	}
}

// until waits until so many different messages were handled.
func (c *consumer) until(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	for {
		select {
		case got := <-c.progress:
			if got >= n {
				return
			}
		case <-ctx.Done():
			t.Fatalf("waited in vain for %d messages", n)
		}
	}
}

func (c *consumer) twice() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, times := range c.handled {
		if times > 1 {
			n++
		}
	}
	return n
}
