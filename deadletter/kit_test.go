package deadletter_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/disk"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/driver/redisstream"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
)

const topic = "orders"

// backend is a broker that the suite runs on: one row for each driver.
type backend struct {
	name string
	// open returns a broker with nothing in it, and what puts bytes into a topic that cannot be decoded; nil: it cannot.
	open func(t *testing.T) (*ferry.Broker, func(topic, raw string) error)
}

func backends(t *testing.T) []backend {
	server, cluster := redistest.Single(t, redistest.Options{AOF: "everysec"}), kafkatest.Single(t)
	return []backend{
		{"memory", func(t *testing.T) (*ferry.Broker, func(string, string) error) {
			m := newMemory(t, memory.Options{})
			return broker(t, m), func(topic, raw string) error { return m.StoreRaw(context.Background(), topic, []byte(raw)) }
		}},
		{"disk", func(t *testing.T) (*ferry.Broker, func(string, string) error) {
			d, err := disk.New(context.Background(), disk.Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			return broker(t, d), func(topic, raw string) error { return d.StoreRaw(context.Background(), topic, []byte(raw)) }
		}},
		{"redis", func(t *testing.T) (*ferry.Broker, func(string, string) error) {
			prefix := fmt.Sprintf("s%d", time.Now().UnixNano())
			d, err := redis.New(context.Background(), redis.Options{URL: server.URL(), Prefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			return broker(t, d), func(topic, raw string) error { return plantOnRedis(server, d, prefix, topic, raw) }
		}},
		{"redisstream", func(t *testing.T) (*ferry.Broker, func(string, string) error) {
			prefix := fmt.Sprintf("x%d", time.Now().UnixNano())
			d, err := redisstream.New(context.Background(),
				redisstream.Options{URL: server.URL(), Prefix: prefix, Partitions: 2})
			if err != nil {
				t.Fatal(err)
			}
			return broker(t, d), func(topic, raw string) error { // an entry that is no message, as another program might add it
				_, err := server.Command("XADD", "{"+prefix+"/"+topic+"/0}:stream", "*", "what", raw)
				return err
			}
		}},
		{"kafka", func(t *testing.T) (*ferry.Broker, func(string, string) error) {
			namespace := "s" + rand.Text()[:10] + "."
			d, err := kafka.New(context.Background(),
				kafka.Options{Brokers: cluster.Addrs(), Namespace: namespace, Partitions: 2, InternalPartitions: 1,
					Session: 30 * time.Second}) // nobody dies here, and a machine may be too busy for heartbeats
			if err != nil {
				t.Fatal(err)
			}
			return broker(t, d), func(topic, raw string) error { return plantOnKafka(cluster, d, namespace+topic, topic, raw) }
		}},
	}
}

func broker(t *testing.T, d driver.Driver) *ferry.Broker {
	t.Helper()
	b, err := ferry.New(d, ferry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

// plantOnRedis publishes a message and overwrites what is stored of it.
func plantOnRedis(server *redistest.Server, d driver.Driver, prefix, topic, raw string) error {
	r, err := d.Publish(context.Background(), []*driver.Message{{ID: "planted " + raw, OwnID: true, Topic: topic}},
		driver.PublishOptions{})
	if err != nil {
		return err
	}
	_, err = server.Command("HSET", "{"+prefix+":"+topic+":0}:bodies", strconv.FormatUint(r[0].Ref.Pos, 10), raw)
	return err
}

// plantOnKafka adds a record that says to be of a version which there is not.
func plantOnKafka(cluster *kafkatest.Cluster, d driver.Driver, name, topic, raw string) error {
	ctx := context.Background()
	if err := d.EnsureGroup(ctx, topic, driver.DefaultGroup, driver.GroupOptions{}); err != nil {
		return err
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.Addrs()...))
	if err != nil {
		return err
	}
	defer cl.Close()
	return cl.ProduceSync(ctx, &kgo.Record{Topic: name, Value: []byte(raw),
		Headers: []kgo.RecordHeader{{Key: "ferry", Value: []byte("0")}}}).FirstErr()
}

// kit is one broker and its queue, for one case of the suite.
type kit struct {
	*testing.T
	d     driver.Driver
	queue *deadletter.Queue
	plant func(topic, raw string) error
	// planted says that something was put into the backend behind its back, which an audit would find.
	planted bool
}

func newKit(t *testing.T, b *ferry.Broker) *kit {
	t.Helper()
	queue, err := deadletter.New(b)
	if err != nil {
		t.Fatal(err)
	}
	return &kit{T: t, d: b.Driver(), queue: queue}
}

func (k *kit) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // of a broker that shares a busy machine
	k.Cleanup(cancel)
	return ctx
}

func (k *kit) ok(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

func (k *kit) publish(ms ...*driver.Message) {
	k.Helper()
	for _, m := range ms {
		if m.Topic == "" {
			m.Topic = topic
		}
		m.OwnID = true
	}
	_, err := k.d.Publish(k.ctx(), ms, driver.PublishOptions{})
	k.ok(err)
}

// take receives exactly n messages of a group and gives each to decide, then settles them in order.
func (k *kit) take(topic, group string, n int, decide func(d *driver.Delivery) driver.Settlement) {
	k.Helper()
	ctx := k.ctx()
	sub, err := k.d.Subscribe(ctx, driver.SubscribeOptions{Topic: topic, Group: group, Instance: "kit", MaxRun: 100})
	k.ok(err)
	for n > 0 {
		ds, err := sub.Receive(ctx, min(n, 500))
		k.ok(err)
		list := make([]driver.Settlement, len(ds))
		for i, d := range ds {
			list[i] = decide(d)
			list[i].Delivery = d
		}
		k.ok(errors.Join(sub.Settle(ctx, list)...))
		n -= len(ds)
	}
	k.ok(sub.Close(ctx))
}

// bury makes the next n messages of the default group dead letters.
func (k *kit) bury(n int, f driver.Failure) {
	k.Helper()
	k.take(topic, driver.DefaultGroup, n, func(*driver.Delivery) driver.Settlement {
		own := f
		return driver.Settlement{Outcome: driver.Dead, Failure: &own}
	})
}

// dead publishes messages with these bodies and buries them. The id of each is its body.
func (k *kit) dead(f driver.Failure, bodies ...string) {
	k.Helper()
	for _, b := range bodies {
		k.publish(&driver.Message{ID: b, Body: []byte(b), Key: "k"})
	}
	k.bury(len(bodies), f)
}

// bodies receives n messages of a group, acknowledges them, and returns their bodies in order.
func (k *kit) bodies(topic string, n int) []string {
	k.Helper()
	var all []string
	k.take(topic, driver.DefaultGroup, n, func(d *driver.Delivery) driver.Settlement {
		all = append(all, string(d.Body))
		return driver.Settlement{Outcome: driver.Ack}
	})
	return all
}

func (k *kit) counts(topic string) driver.GroupStats {
	k.Helper()
	st, err := k.d.Stats(k.ctx(), topic)
	k.ok(err)
	return st.Groups[0]
}

// exact reports whether the counts of this broker are not estimates.
func (k *kit) exact() bool { return k.d.Capabilities().Counts == driver.CountsExact }

func (k *kit) where(text string) *deadletter.Filter {
	k.Helper()
	f, err := deadletter.ParseFilter(text)
	k.ok(err)
	return f
}

// all browses to the end, so many at a time, and returns the ids.
func (k *kit) all(sel deadletter.Selection, limit, scan int) []string {
	k.Helper()
	var ids []string
	q := deadletter.Query{Selection: sel, Limit: limit, MaxScan: scan}
	for range 10_000 {
		p, err := k.queue.Browse(k.ctx(), q)
		k.ok(err)
		if len(p.Letters) > limit {
			k.Fatalf("%d letters on a page of %d", len(p.Letters), limit)
		}
		for _, l := range p.Letters {
			if l.Message == nil {
				ids = append(ids, string(l.Raw))
			} else {
				ids = append(ids, l.ID)
			}
		}
		if q.Cursor = p.Next; p.Next == "" {
			return ids
		}
	}
	k.Fatal("the listing does not end")
	return nil
}

func (k *kit) replay(r deadletter.ReplayOptions) deadletter.Report {
	k.Helper()
	report, err := k.queue.Replay(k.ctx(), r)
	k.ok(err)
	return report
}

var (
	slow = driver.Failure{Reason: driver.ReasonTimeout, Error: "timeout after 31 ms"}
	bad  = driver.Failure{Reason: driver.ReasonFatal, Error: "no such user"}
)

func numbered(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%03d", prefix, i)
	}
	return all
}

// newMemory returns an empty broker in memory.
func newMemory(t testing.TB, o memory.Options) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
