package state

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// far is a broker that is some way off: each request takes a while to arrive, and so does its answer. Whoever is killed
// meanwhile has sent it all the same. Follow-ups are stored before the outcome of their parent, by a request of their
// own, as on Redis Streams.
type far struct {
	driver.Driver
	most time.Duration
	dead atomic.Bool // its process was killed: it sends no further request

	mu     sync.Mutex
	random *rand.Rand
}

// travel is how long one way takes.
func (f *far) travel() {
	f.mu.Lock()
	d := between(f.random, 0, f.most)
	f.mu.Unlock()
	sleep(context.Background(), d) // what is under way arrives, whoever waits for it
}

// Publish stores messages.
func (f *far) Publish(ctx context.Context, ms []*driver.Message, o driver.PublishOptions) ([]driver.Receipt, error) {
	f.travel()
	defer f.travel()
	return f.Driver.Publish(ctx, ms, o)
}

// Subscribe joins a group.
func (f *far) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	s, err := f.Driver.Subscribe(ctx, o)
	if err != nil {
		return nil, err
	}
	return &farSubscription{s, f}, nil
}

type farSubscription struct {
	driver.Subscription
	far *far
}

// Settle stores what settlements emit, and then applies them.
func (s *farSubscription) Settle(ctx context.Context, list []driver.Settlement) []error {
	var emitted []*driver.Message
	plain := make([]driver.Settlement, len(list))
	for i, x := range list {
		emitted = append(emitted, x.Emit...)
		plain[i], plain[i].Emit = x, nil
	}
	if len(emitted) > 0 {
		if _, err := s.far.Publish(ctx, emitted, driver.PublishOptions{}); err != nil {
			return each(len(list), err)
		}
	}
	if s.far.dead.Load() {
		return each(len(list), driver.ErrUnknown)
	}
	s.far.travel()
	defer s.far.travel()
	return s.Subscription.Settle(ctx, plain)
}

func each(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// KV returns the named values.
func (f *far) KV() driver.KV { return &farKV{f.Driver.KV(), f} }

type farKV struct {
	driver.KV
	far *far
}

// Get reads values.
func (k *farKV) Get(ctx context.Context, bucket string, names ...string) ([]driver.Value, error) {
	k.far.travel()
	defer k.far.travel()
	return k.KV.Get(ctx, bucket, names...)
}

// Apply makes writes.
func (k *farKV) Apply(ctx context.Context, bucket string, o driver.KVOptions, ws ...driver.Write) []driver.WriteResult {
	k.far.travel()
	defer k.far.travel()
	return k.KV.Apply(ctx, bucket, o, ws...)
}
