package rediskv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redistest"
)

// rig is a KV whose single calls can be held up before they are sent, so that others queue behind them.
type rig struct {
	*testing.T
	kv     *KV
	client goredis.UniversalClient
	gate   *gate
}

func newRig(t *testing.T, url string) *rig {
	t.Helper()
	c, err := redisconn.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{names: map[string]int{}}
	if cluster, ok := c.(*goredis.ClusterClient); ok {
		cluster.OnNewNode(func(node *goredis.Client) { node.AddHook(g) })
	} else {
		c.AddHook(g)
	}
	k := New(Options{Client: c, Tag: t.Name() + ":", Refuse: func(context.Context, driver.Durability) error {
		return nil
	}})
	t.Cleanup(func() {
		k.Close()
		_ = c.Close()
	})
	return &rig{t, k, c, g}
}

// gate holds up scripts that are sent alone while it is shut, and counts what is sent.
type gate struct {
	mu    sync.Mutex
	shut  chan struct{} // nil: open
	calls []int         // keys of each script
	names map[string]int
}

// count is how many commands of a name were sent.
func (g *gate) count(name string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.names[name]
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.calls = make(chan struct{}), nil
}

// open lets everything pass.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

func (g *gate) sent() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

func (g *gate) note(cmd goredis.Cmder) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names[cmd.Name()]++
	if cmd.Name() != "evalsha" {
		return nil
	}
	keys, _ := cmd.Args()[2].(int)
	g.calls = append(g.calls, keys)
	return g.shut
}

func (g *gate) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (g *gate) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if shut := g.note(cmd); shut != nil {
			<-shut
		}
		return next(ctx, cmd)
	}
}

func (g *gate) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		for _, cmd := range cmds {
			g.note(cmd)
		}
		return next(ctx, cmds)
	}
}

func (r *rig) write(ctx context.Context, bucket, name string) driver.WriteResult {
	return r.kv.Apply(ctx, bucket, driver.KVOptions{},
		driver.Write{Name: name, Data: []byte(bucket + "/" + name), If: driver.Absent, TTL: time.Minute})[0]
}

// busy occupies every sender of the servers of these buckets, and returns a function that waits for their results.
func (r *rig) busy(buckets ...string) (done func()) {
	r.Helper()
	r.gate.close()
	var all sync.WaitGroup
	for i, bucket := range buckets {
		for n := range senders {
			all.Go(func() {
				if res := r.write(r.Context(), bucket, fmt.Sprintf("busy%d-%d", i, n)); res.Err != nil {
					r.Error(res.Err)
				}
			})
		}
	}
	r.until("senders are busy", func() bool { return len(r.gate.sent()) == senders*len(buckets) })
	return all.Wait
}

// until waits for something that happens in another goroutine.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("%s: not within a minute", what)
		}
	}
}

// queued is how many calls wait.
func (r *rig) queued() (n int) {
	r.kv.gatherer.mu.Lock()
	defer r.kv.gatherer.mu.Unlock()
	for _, q := range r.kv.gatherer.queues {
		n += len(q.calls)
	}
	return n
}

// holds demands that a value is there as it was written.
func (r *rig) holds(bucket, name string, res driver.WriteResult) {
	r.Helper()
	vs, err := r.kv.Get(r.Context(), bucket, name)
	if res.Err != nil || err != nil || string(vs[0].Data) != bucket+"/"+name || vs[0].Revision != res.Revision {
		r.Errorf("%s/%s is %q at %d, %v; its write said %d, %v", bucket, name, vs[0].Data, vs[0].Revision, err,
			res.Revision, res.Err)
	}
}

// together writes to some buckets while every sender is busy, and returns the results in order of buckets.
func (r *rig) together(buckets []string, each int) map[string]driver.WriteResult {
	r.Helper()
	done := r.busy(buckets[0])
	var mu sync.Mutex
	var all sync.WaitGroup
	results := map[string]driver.WriteResult{}
	for _, bucket := range buckets {
		for n := range each {
			all.Go(func() {
				name := fmt.Sprint("value", n)
				res := r.write(r.Context(), bucket, name)
				mu.Lock()
				defer mu.Unlock()
				results[bucket+"/"+name] = res
			})
		}
	}
	r.until("the rest is queued", func() bool { return r.queued() == len(buckets)*each })
	r.gate.open()
	all.Wait()
	done()
	return results
}

// Writes that overlap travel together: what queued up behind two senders is one call of one script, whichever buckets
// it is for.
func TestOverlappingWritesTravelTogether(t *testing.T) {
	t.Parallel()
	r := newRig(t, redistest.Single(t, redistest.Options{}).URL())
	buckets := []string{"one", "two", "three"}
	results := r.together(buckets, 10)
	sent := r.gate.sent()
	if want := []int{8, 8, 24}; !slices.Equal(sent, want) {
		t.Errorf("scripts were sent with %v keys, want %v", sent, want)
	}
	for _, bucket := range buckets {
		for n := range 10 {
			name := fmt.Sprint("value", n)
			r.holds(bucket, name, results[bucket+"/"+name])
		}
	}
	r.kv.Close()
	if len(r.kv.gatherer.queues) != 0 {
		t.Error("a queue is left behind")
	}
}

// A bucket of which another program has a key spoils no other that it travels with.
func TestForeignKeyBesideOthers(t *testing.T) {
	t.Parallel()
	for _, version := range redistest.Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, redistest.Single(t, redistest.Options{Version: version}).URL())
			keys := r.kv.keys("foreign")
			if err := r.client.Set(t.Context(), keys[2], "mine", 0).Err(); err != nil {
				t.Fatal(err)
			}
			results := r.together([]string{"sound", "foreign", "other"}, 1)
			r.holds("sound", "value0", results["sound/value0"])
			r.holds("other", "value0", results["other/value0"])
			if err := results["foreign/value0"].Err; !errors.Is(err, driver.ErrNotApplied) {
				t.Errorf("the write beside a foreign key: %v, want that it is not applied", err)
			}
			if n, err := r.client.Exists(t.Context(), keys[0], keys[1], keys[3], keys[4]).Result(); err != nil || n != 0 {
				t.Errorf("%d keys were written although one is foreign, %v", n, err)
			}
		})
	}
}

// A queued write whose caller gives up is not sent; when the driver closes, what is queued says so.
func TestQueuedWriteIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, redistest.Single(t, redistest.Options{}).URL())
	done := r.busy("one")
	ctx, cancel := context.WithCancel(t.Context())
	var late, left driver.WriteResult
	var all sync.WaitGroup
	all.Go(func() { late = r.write(ctx, "one", "late") })
	r.until("one is queued", func() bool { return r.queued() == 1 })
	cancel()
	all.Wait()
	if !errors.Is(late.Err, driver.ErrNotApplied) {
		t.Errorf("a write that was given up in the queue: %v, want that it is not applied", late.Err)
	}
	all.Go(func() { left = r.write(t.Context(), "one", "left") })
	r.until("another is queued", func() bool { return r.queued() == 1 })
	r.kv.Close()
	all.Wait()
	if !errors.Is(left.Err, driver.ErrClosed) {
		t.Errorf("a write that was queued when the driver closed: %v", left.Err)
	}
	r.gate.open()
	done()
	if res := r.write(t.Context(), "one", "after"); !errors.Is(res.Err, driver.ErrClosed) {
		t.Errorf("a write after the end: %v", res.Err)
	}
	if n, err := r.client.HLen(context.Background(), r.kv.keys("one")[1]).Result(); err != nil || n != senders {
		t.Errorf("%d values, %v; want those of the %d senders alone", n, err, senders)
	}
}

// On a cluster each bucket is a call of its own, and what a node has not any more finds its way.
func TestGatheringOnACluster(t *testing.T) {
	t.Parallel()
	set := redistest.Cluster(t, redistest.Options{Steady: true})
	r := newRig(t, set.URL())
	var here, elsewhere []string // buckets
	node, err := redisconn.NodeOf(t.Context(), r.client, r.kv.keys("bucket0")[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; len(here) < 3 || len(elsewhere) < 1; i++ {
		bucket := fmt.Sprint("bucket", i)
		if other, _ := redisconn.NodeOf(t.Context(), r.client, r.kv.keys(bucket)[0]); other == node {
			here = append(here, bucket)
		} else {
			elsewhere = append(elsewhere, bucket)
		}
	}
	here = here[:3]
	results := r.together(here, 2)
	sent := r.gate.sent()
	for _, bucket := range here {
		r.holds(bucket, "value0", results[bucket+"/value0"])
		r.holds(bucket, "value1", results[bucket+"/value1"])
	}
	if want := []int{8, 8, 8, 8, 8}; !slices.Equal(sent, want) {
		t.Errorf("scripts were sent with %v keys, want %v: those of one slot in each", sent, want)
	}
	for _, strayed := range [][]string{elsewhere[:1], {here[0], elsewhere[0]}} { // a slot that has just moved away
		calls := []*call{}
		for _, bucket := range strayed {
			calls = append(calls, newCall(bucket,
				[]driver.Write{{Name: fmt.Sprint("strayed", len(strayed)), Data: []byte("x")}}))
		}
		r.kv.gatherer.trip(t.Context(), node, byBucket(calls))
		for _, c := range calls {
			if c.err != nil || len(c.reply) != 1 {
				t.Errorf("a write sent to the wrong node: %v, %v", c.reply, c.err)
			}
		}
	}
	r.crossSlots(node, here)
}

// crossSlots writes through a client that does not know that its server is one of a cluster.
func (r *rig) crossSlots(node *goredis.Client, buckets []string) {
	r.Helper()
	k := New(Options{Client: node, Tag: r.Name() + ":", Refuse: r.kv.o.Refuse})
	defer k.Close()
	calls := []*call{}
	for _, bucket := range buckets {
		calls = append(calls, newCall(bucket, []driver.Write{{Name: "plain", Data: []byte("x")}}))
	}
	k.gatherer.trip(r.Context(), node, byBucket(calls))
	for _, c := range calls {
		if c.err != nil || !k.gatherer.apart.Load() {
			r.Errorf("a plain client of a cluster's node: %v", c.err)
		}
	}
}

// A server that has forgotten the script is sent it again.
func TestGatheredScriptIsForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t, redistest.Single(t, redistest.Options{}).URL())
	node := r.client.(*goredis.Client)
	for name, send := range map[string]func(context.Context, *goredis.Client, []*bucketWrites){
		"trip": r.kv.gatherer.trip, "pipelined": r.kv.gatherer.pipelined} {
		if err := r.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		calls := []*call{newCall("one", []driver.Write{{Name: name}}), newCall("two", []driver.Write{{Name: name}})}
		send(t.Context(), node, byBucket(calls))
		for _, c := range calls {
			if c.err != nil {
				t.Errorf("%s: %v", name, c.err)
			}
		}
	}
}
