package failpoints

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/driver/redisstream"
)

// order is what a child is told, by its environment.
type order struct {
	Broker, Addr, Namespace, Operation string
	Point                              int64 // the step of its traffic at which it dies
}

const orderEnv = "FERRY_FAILPOINT"

// trigger kills this process at an exact step: just before or after something is sent to a server, or after something
// came from one. What happens between two steps leaves no trace outside the process, so that these are all the deaths
// that can differ.
type trigger struct {
	armed atomic.Bool
	steps atomic.Int64
	fatal int64
}

func (t *trigger) step() {
	if t.armed.Load() && t.steps.Add(1) == t.fatal {
		die()
	}
}

// die is kill -9 of this process.
func die() {
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}

// conn is a connection whose traffic is counted.
type conn struct {
	net.Conn
	t *trigger
}

func (c conn) Write(b []byte) (int, error) {
	c.t.step()
	n, err := c.Conn.Write(b)
	c.t.step()
	return n, err
}

func (c conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.t.step()
	return n, err
}

func (t *trigger) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return conn{c, t}, nil
}

// opened is a driver with the client that it does not close itself.
type opened struct {
	driver.Driver
	hangUp func() error
}

// open opens a broker through the trigger.
func open(ctx context.Context, o order, t *trigger) (opened, error) {
	if strings.HasPrefix(o.Broker, "kafka") {
		d, err := kafka.New(ctx, kafka.Options{Brokers: []string{o.Addr}, Namespace: o.Namespace, Partitions: 1,
			InternalPartitions: 1, Dial: t.dial,
			Transactions: o.Broker == kafkaWithTransactions})
		return opened{d, func() error { return nil }}, err
	}
	client := goredis.NewClient(&goredis.Options{Addr: o.Addr, Dialer: t.dial, MaxRetries: -1,
		ContextTimeoutEnabled: true})
	if o.Broker == "redisstream" {
		d, err := redisstream.New(ctx, redisstream.Options{Client: client, Prefix: o.Namespace, Partitions: 1})
		return opened{d, client.Close}, err
	}
	d, err := redis.New(ctx, redis.Options{Client: client, Prefix: o.Namespace})
	return opened{d, client.Close}, err
}

// child carries out one operation, dies in it or right after it, and says on its output how far it came.
func child(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	op, ok := operations[o.Operation]
	if !ok {
		return fmt.Errorf("no operation %q", o.Operation)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	t := &trigger{fatal: o.Point}
	d, err := open(ctx, o, t)
	if err != nil {
		return err
	}
	v := &victim{Driver: d}
	if op.consumes {
		if v.s, err = d.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Instance: "victim",
			Lease: d.Capabilities().MinLease}); err != nil {
			return err
		}
	}
	if op.holds {
		ds, err := v.s.Receive(ctx, 1)
		if err != nil {
			return err
		}
		v.held = ds[0]
	}
	t.armed.Store(true)
	err, said := op.do(ctx, v), completed
	t.armed.Store(false)
	if errors.Is(err, driver.ErrLeaseLost) && time.Now().After(v.held.LeaseUntil) {
		err, said = nil, late
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.Operation, err)
	}
	if _, err := os.Stdout.WriteString(said); err != nil {
		return err
	}
	die()
	return nil
}

// What a child says before it dies: it came to the end of its operation; or the machine let it wait until its lease was
// over, which says nothing.
const (
	completed = "completed\n"
	late      = "late\n"
)
