package growth

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Shapes are all ways to grow that are measured.
func Shapes() []Shape {
	return []Shape{
		{Name: "keys", Title: "messages spread over so many keys", Sizes: []int{1_000, 100_000, 1_000_000}, Unit: "message",
			Idle: "key", run: keys},
		{Name: "topics", Title: "10 topics that are used among so many that are not", Sizes: []int{10, 1_000, 10_000},
			Unit: "message", Idle: "topic", run: topics},
		{Name: "groups", Title: "so many groups of one topic, all consumed by one worker", Sizes: []int{1, 100, 1_000},
			Unit: "delivery", run: groups},
		{Name: "due", Title: "so many delayed messages that become due within one second",
			Sizes: []int{10_000, 100_000, 1_000_000}, Unit: "message", run: due},
		{Name: "bodies", Title: "bodies of so many bytes", Sizes: []int{10_000, 100_000}, Unit: "KB", run: bodies},
	}
}

const (
	messages = 300_000 // of a measurement, unless its size says otherwise
	window   = 10_000
	body     = 256
	topic    = "growth"
)

func keys(ctx context.Context, g *grown, size int) (Cost, error) {
	n, size := g.scaled(max(messages, size)), g.scaled(size)
	payload := random(body)
	f := flow{total: n, topics: []string{topic}, groups: []string{driver.DefaultGroup}, window: window,
		message: func(i int) *ferry.Message {
			return &ferry.Message{Topic: topic, Key: fmt.Sprint("customer-", i*7919%size), Body: payload}
		}}
	if err := warmUp(ctx, g, f); err != nil {
		return Cost{}, err
	}
	before, err := g.bytes()
	if err != nil {
		return Cost{}, err
	}
	c, err := g.cost(float64(n), func() error { return f.run(ctx, g.Broker) })
	if err != nil {
		return c, err
	}
	after, err := g.bytes()
	c.IdleBytes = max(0, after-before) / float64(size)
	return c, err
}

func topics(ctx context.Context, g *grown, size int) (Cost, error) {
	const used = 10
	before, err := g.bytes()
	if err != nil {
		return Cost{}, err
	}
	idle := g.scaled(size)
	for i := range idle {
		o := driver.GroupOptions{}
		if err := g.Driver().EnsureGroup(ctx, fmt.Sprint("idle-", i), driver.DefaultGroup, o); err != nil {
			return Cost{}, err
		}
	}
	after, err := g.bytes()
	if err != nil {
		return Cost{}, err
	}
	payload, names := random(body), make([]string, used)
	for i := range names {
		names[i] = fmt.Sprint("used-", i)
	}
	n := g.scaled(messages)
	f := flow{total: n, topics: names, groups: []string{driver.DefaultGroup}, window: window,
		message: func(i int) *ferry.Message { return &ferry.Message{Topic: names[i/batch%used], Body: payload} }}
	if err := warmUp(ctx, g, f); err != nil {
		return Cost{}, err
	}
	c, err := g.cost(float64(n), func() error { return f.run(ctx, g.Broker) })
	c.IdleBytes = max(0, after-before) / float64(idle)
	return c, err
}

func groups(ctx context.Context, g *grown, size int) (Cost, error) {
	size = g.scaled(size)
	n, payload, names := max(1, g.scaled(messages)/size), random(body), make([]string, size)
	for i := range names {
		names[i] = fmt.Sprint("group-", i)
	}
	f := flow{total: n, topics: []string{topic}, groups: names, window: max(batch, window/size),
		message: func(int) *ferry.Message { return &ferry.Message{Topic: topic, Body: payload} }}
	for _, name := range names { // a broker that cannot have so many says so here; a worker would try again
		if err := g.Driver().EnsureGroup(ctx, topic, name, driver.GroupOptions{}); err != nil {
			return Cost{}, err
		}
	}
	return g.cost(float64(n*size), func() error { return f.run(ctx, g.Broker) })
}

// due publishes messages that become due within one second, after all of them are there. When that is, the pace of the
// warming up tells: it is another on each broker, and on a machine that does other work.
func due(ctx context.Context, g *grown, size int) (Cost, error) {
	size = g.scaled(size)
	repeat := max(1, g.scaled(20_000)/size) // a small number says little once
	payload := random(body)
	f := flow{total: g.scaled(20_000), topics: []string{topic}, groups: []string{driver.DefaultGroup}, window: window,
		message: func(int) *ferry.Message { return &ferry.Message{Topic: topic, Body: payload} }}
	began := time.Now()
	if err := warmUp(ctx, g, f); err != nil {
		return Cost{}, err
	}
	pace := time.Since(began) / time.Duration(f.total)
	return g.cost(float64(size*repeat), func() error {
		for range repeat {
			first := time.Now().Add(time.Second + time.Duration(size)*pace)
			f.total, f.window = size, size
			f.message = func(int) *ferry.Message {
				return &ferry.Message{Topic: topic, Body: payload, At: first.Add(rand.N(time.Second))}
			}
			if err := f.run(ctx, g.Broker); err != nil {
				return err
			}
		}
		return nil
	})
}

func bodies(ctx context.Context, g *grown, size int) (Cost, error) {
	const total = 400_000_000
	n, payload := max(batch, g.scaled(total)/size), random(size)
	f := flow{total: n, topics: []string{topic}, groups: []string{driver.DefaultGroup}, window: 100,
		message: func(int) *ferry.Message { return &ferry.Message{Topic: topic, Body: payload} }}
	if err := warmUp(ctx, g, f); err != nil {
		return Cost{}, err
	}
	return g.cost(float64(n)*float64(size)/1e3, func() error { return f.run(ctx, g.Broker) })
}

// warmUp lets a little of a flow through, so that what is set up once is not counted.
func warmUp(ctx context.Context, g *grown, f flow) error {
	f.total = min(f.total, g.scaled(20_000))
	return f.run(ctx, g.Broker)
}

// random bytes do not compress.
func random(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
