// Package redisshell is what a driver on Redis has whatever structures it keeps its messages in: the connection and
// what is known of the server behind it, named values, tokens, the subscriptions that are open, and work in the
// background that ends with them.
package redisshell

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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

// Subscription is one of the driver.
type Subscription interface {
	comparable
	Close(ctx context.Context) error
}

// Shell is around one driver. It is open until Close.
type Shell[S Subscription] struct {
	Client goredis.UniversalClient
	Survey *redisconn.Survey
	KV     *rediskv.KV
	Nonce  string // of this process, in tokens
	Claims Turns

	closing    *redisconn.Closing // of the client, if it is ours to close
	registry   string
	counter    atomic.Uint64 // counts tokens
	background context.Context
	stop       context.CancelFunc
	work       sync.WaitGroup

	mu     sync.Mutex
	closed bool
	subs   map[S]struct{}
}

// Keys are the names by which a driver separates its data from that of the other one.
type Keys struct {
	Registry string // of all topics
	Values   string // begins those of named values
}

// Open connects, finds out what the server can do, refuses one that cannot work, and warns about one that may lose
// messages.
func Open[S Subscription](ctx context.Context, o Options, k Keys) (*Shell[S], error) {
	s := &Shell[S]{Client: o.Client, Nonce: newNonce(), registry: k.Registry, subs: map[S]struct{}{}}
	var err error
	if s.Client == nil {
		if s.Client, err = redisconn.Connect(o.URL); err != nil {
			return nil, err
		}
		s.closing = redisconn.NewClosing(s.Client)
	}
	if s.Survey, err = redisconn.NewSurvey(ctx, s.Client, k.Registry, o.Strict, o.Logger); err != nil {
		if s.closing != nil {
			_ = s.Client.Close()
		}
		return nil, err
	}
	s.Claims = NewTurns(redisconn.Connections(ctx, s.Client))
	s.background, s.stop = context.WithCancel(context.Background())
	s.KV = rediskv.New(rediskv.Options{Client: s.Client, Tag: k.Values, Refuse: s.Survey.Refuse})
	return s, nil
}

func newNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Count returns another number each time.
func (s *Shell[S]) Count() uint64 { return s.counter.Add(1) }

// NewToken names a lease or a member: the nonce of this process and a counter.
func (s *Shell[S]) NewToken() string { return s.Nonce + "-" + strconv.FormatUint(s.Count(), 36) }

// Go does work in the background until the shell is closed.
func (s *Shell[S]) Go(work func(ctx context.Context)) { s.work.Go(func() { work(s.background) }) }

// Refuse says why nothing can be done any more, or nil.
func (s *Shell[S]) Refuse() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return refusal.Closed()
	}
	return nil
}

// RefusePublish says why nothing can be published with these options, or nil.
func (s *Shell[S]) RefusePublish(ctx context.Context, o driver.PublishOptions) error {
	if err := s.Refuse(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return refusal.NotStarted(err)
	}
	return s.Survey.Refuse(ctx, o.Level)
}

// Add notes a subscription, which Close will close, and calls begin. It refuses if the shell was closed meanwhile.
func (s *Shell[S]) Add(sub S, begin func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return refusal.Closed()
	}
	s.subs[sub] = struct{}{}
	begin()
	return nil
}

// Remove forgets a subscription that is closed.
func (s *Shell[S]) Remove(sub S) {
	s.mu.Lock()
	delete(s.subs, sub)
	s.mu.Unlock()
}

// Subscriptions returns those that are open and belong to some.
func (s *Shell[S]) Subscriptions(belongs func(S) bool) []S {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []S
	for sub := range s.subs {
		if belongs(sub) {
			all = append(all, sub)
		}
	}
	return all
}

// Diagnose looks at the server again and says what it finds.
func (s *Shell[S]) Diagnose(ctx context.Context) ([]driver.Finding, error) {
	if err := s.Refuse(); err != nil {
		return nil, err
	}
	server, err := redisconn.Examine(ctx, s.Client, s.registry)
	if err != nil {
		return nil, err
	}
	return server.Findings(), nil
}

// Capabilities adds to those of a driver what both drivers have alike, and what was found out about the server.
func (s *Shell[S]) Capabilities(c driver.Capabilities) driver.Capabilities {
	c.LeaseScope, c.MinLease, c.DefaultLease = driver.LeasePerMessage, time.Second, 10*time.Second
	c.Counts, c.GetByID, c.PhysicalDelete = driver.CountsExact, driver.LookupIndexed, true
	c.Durability, c.Levels = s.Survey.Opened().Level(), s.Survey.Opened().Levels()
	return c
}

// Usage tells what the primaries use, for whoever uses them.
func (s *Shell[S]) Usage(ctx context.Context) (driver.Usage, error) {
	if err := s.Refuse(); err != nil {
		return driver.Usage{}, err
	}
	u, err := redisconn.Usage(ctx, s.Client)
	return u, redisconn.Classify(err)
}

// Close ends every subscription, then the background, for which it calls wake, and at last the connections, if they are
// ours.
func (s *Shell[S]) Close(ctx context.Context, wake func()) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		return nil
	}
	var err error
	for _, sub := range s.Subscriptions(func(S) bool { return true }) {
		if e := sub.Close(ctx); e != nil {
			err = e
		}
	}
	s.stop()
	wake()
	s.KV.Close()
	s.work.Wait()
	if s.closing != nil {
		if e := s.closing.Close(s.Client); e != nil && err == nil {
			err = e
		}
	}
	return err
}
