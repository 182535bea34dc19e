package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/open"
)

// order is what a process is to do.
type order struct {
	Broker string `json:"broker"`
	URL    string `json:"url"`
	Via    string `json:"via,omitempty"` // where to connect to instead
	Name   string `json:"name"`
	Role   string `json:"role"`
	Seed   uint64 `json:"seed"`

	Group   int           `json:"group,omitempty"`   // of leaders
	TTL     time.Duration `json:"ttl,omitempty"`     // of their lease
	Members int           `json:"members,omitempty"` // in one process, where it owns the broker
	Repeat  *write        `json:"repeat,omitempty"`  // what an earlier life did not learn the outcome of
	Pace    time.Duration `json:"pace,omitempty"`    // the longest time between two writes
}

// Child runs this process as one of a run, if it was started as one, and reports whether it was.
func Child() bool {
	text := os.Getenv(childEnv)
	if text == "" {
		return false
	}
	if err := child(text); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
	return true
}

func child(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	goredis.SetLogger(silent{})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	b, err := o.open(ctx)
	if err != nil || b == nil {
		return err
	}
	var mu sync.Mutex // of stdout: a line is one piece
	out := json.NewEncoder(os.Stdout)
	m := newMember(o, b, func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if out.Encode(e) != nil { // nobody is there any more
			os.Exit(1)
		}
	})
	noting, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	m.noted.Go(func() { noteStalls(noting, func() int64 { return clockOf(o.Broker) }, m.record) })
	err = m.run(ctx)
	unwatch()
	m.noted.Wait()
	return errors.Join(err, b.Close(context.WithoutCancel(ctx)))
}

// silent drops what the Redis client says of broken connections.
type silent struct{}

// Printf drops it.
func (silent) Printf(context.Context, string, ...any) {}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// open connects through the proxy, and tries again for a while: it may begin while its server is away.
func (o order) open(ctx context.Context) (b *ferry.Broker, err error) {
	for end := time.Now().Add(30 * time.Second); ctx.Err() == nil; {
		if b, err = o.connect(ctx); err == nil || errors.Is(err, ferry.ErrInvalid) || time.Now().After(end) {
			return b, err
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return nil, nil
}

func (o order) connect(ctx context.Context) (*ferry.Broker, error) {
	u, err := url.Parse(o.URL)
	if err != nil {
		return nil, err
	}
	options := ferry.Options{Logger: quiet()}
	switch {
	case o.Via == "":
		return open.URL(ctx, o.URL, options)
	case u.Scheme == "kafka": // brokers tell their own address, so that the connection itself takes the detour
		q := u.Query()
		return kafka.Open(ctx, kafka.Options{
			Brokers: []string{u.Host}, Namespace: q.Get("namespace"), Transactions: q.Get("transactions") == "true",
			Partitions: 2, InternalPartitions: 2, Broker: options,
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, o.Via)
			},
		})
	}
	return open.URL(ctx, strings.Replace(o.URL, u.Host, o.Via, 1), options)
}

// member is who does what an order says.
type member struct {
	order
	b      *ferry.Broker
	record func(Event)
	random *rand.Rand
	tasks  sync.WaitGroup
	noted  sync.WaitGroup
	ops    int
}

func newMember(o order, b *ferry.Broker, record func(Event)) *member {
	m := &member{order: o, b: b, random: rand.New(rand.NewPCG(o.Seed, 0))}
	m.record = func(e Event) {
		e.At, e.Group = clockOf(o.Broker), o.Group
		if e.Process == "" {
			e.Process = o.Name
		}
		record(e)
	}
	return m
}

// run does it, until ctx ends.
func (m *member) run(ctx context.Context) error {
	defer m.tasks.Wait()
	switch m.Role {
	case "leader":
		return m.candidates(ctx)
	case "scheduler":
		return m.schedule(ctx)
	case "writer":
		return m.writeValues(ctx)
	}
	return fmt.Errorf("there is no role %q", m.Role)
}
