package redis

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/rediskv"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Driver is a connection to one Redis server, Sentinel set or Cluster.
type Driver struct {
	o        Options
	client   goredis.UniversalClient
	closing  *redisconn.Closing // of the client, if it is ours to close
	scripts  *scripts
	caps     driver.Capabilities
	survey   *redisconn.Survey
	kv       *rediskv.KV
	nonce    string        // of this process, in tokens
	counter  atomic.Uint64 // counts them
	requests requests
	arenas   arenas

	mu     sync.Mutex
	closed bool
	topics map[string]*topic
	subs   map[*subscription]struct{}

	clock     clock
	wake      *notifier
	scheduler *scheduler
	changed   chan struct{}      // the server may be another one
	stop      context.CancelFunc // of background work
	work      sync.WaitGroup
}

var _ driver.Driver = (*Driver)(nil)

// New connects, and checks the server. Close the driver when it is no longer used.
func New(ctx context.Context, o Options) (*Driver, error) {
	o, err := o.resolved()
	if err != nil {
		return nil, err
	}
	d := &Driver{o: o, client: o.Client, topics: map[string]*topic{}, subs: map[*subscription]struct{}{}, nonce: newNonce(),
		changed: make(chan struct{}, 1)}
	if d.client == nil {
		if d.client, err = redisconn.Connect(o.URL); err != nil {
			return nil, err
		}
		d.closing = redisconn.NewClosing(d.client)
	}
	if err := d.examine(ctx); err != nil {
		if d.closing != nil {
			_ = d.client.Close()
		}
		return nil, err
	}
	d.requests.nonce = d.nonce + "-"
	background, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.kv = rediskv.New(rediskv.Options{Client: d.client, Tag: o.Prefix + ":kv/", Refuse: d.survey.Refuse})
	d.wake = newNotifier(d)
	d.scheduler = newScheduler(d)
	d.work.Go(func() { d.wake.run(background) })
	d.work.Go(func() { d.scheduler.run(background) })
	d.work.Go(func() { d.keepHouse(background) })
	return d, nil
}

func newNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// newToken names a lease or a member: the nonce of this process and a counter.
func (d *Driver) newToken() string { return d.nonce + "-" + strconv.FormatUint(d.counter.Add(1), 36) }

// KV returns the named values.
func (d *Driver) KV() driver.KV { return d.kv }

// Capabilities are what was found out about the server when it was opened.
func (d *Driver) Capabilities() driver.Capabilities {
	c := d.caps
	c.Levels = slices.Clone(c.Levels)
	return c
}

// Close ends every subscription, then the connections, if they are the driver's own.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	subs := make([]*subscription, 0, len(d.subs))
	for s := range d.subs {
		subs = append(subs, s)
	}
	d.mu.Unlock()
	var err error
	for _, s := range subs {
		if e := s.Close(ctx); e != nil {
			err = e
		}
	}
	d.stop()
	d.wake.close()
	d.kv.Close()
	d.work.Wait()
	if d.closing != nil {
		if e := d.closing.Close(d.client); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// open says why nothing can be done any more, or nil.
func (d *Driver) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return refusal.Closed()
	}
	return nil
}

// clock estimates the server's time, only to know when to ask: the server alone decides what is due.
type clock struct{ offset atomic.Int64 } // server minus ours, nanoseconds

// saw notes a time that the server told just now.
func (c *clock) saw(serverMS int64) {
	c.offset.Store(serverMS*int64(time.Millisecond) - time.Now().UnixNano())
}

// local returns our time of a server's.
func (c *clock) local(serverMS int64) time.Time {
	const years = 100 * 365 * 24 * int64(time.Hour/time.Millisecond)
	now := time.Now()
	away := serverMS - (now.UnixNano()+c.offset.Load())/int64(time.Millisecond)
	return now.Add(time.Duration(min(max(away, -years), years)) * time.Millisecond)
}
