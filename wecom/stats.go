package wecom

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
)

// Stats count what a pipeline did in this process since it was made.
type Stats struct {
	// Callbacks that were stored, Refused ones that were not the vendor's or not readable, and Failed ones that the broker
	// did not take. Other were not about messages.
	Callbacks, Refused, Failed, Other uint64
	// Pulls that succeeded, PullsFailed that will be tried again, and Limited ones that the vendor wants later.
	Pulls, PullsFailed, Limited uint64
	// Rewound cursors were refused by the vendor.
	Rewound uint64
	// Messages that were published, and Duplicates that had been. Of those that are Cut only the beginning was published:
	// they are too large for the broker.
	Messages, Duplicates, Cut uint64
	// LastCallback is when the last callback was stored; zero if there was none.
	LastCallback time.Time
	// TokenUntil is when the access token is asked for anew; zero if there is none.
	TokenUntil time.Time
	// Problems are the last errors of accounts whose last pull failed.
	Problems map[string]error
}

type counters struct {
	callbacks, refused, failed, others   atomic.Uint64
	pulls, pullsFailed, limited, rewinds atomic.Uint64
	messages, duplicates, cut            atomic.Uint64
	lastCallback                         atomic.Int64 // nanoseconds since 1970

	mu       sync.Mutex
	problems map[string]error
	heard    map[string]time.Time // by account: when its last callback was stored
}

// called counts a callback.
func (c *counters) called(err error) {
	switch {
	case err == nil:
		c.callbacks.Add(1)
		c.lastCallback.Store(time.Now().UnixNano())
	case statusOf(err) >= 500:
		c.failed.Add(1)
	default:
		c.refused.Add(1)
	}
}

func (c *counters) otherNotice() { c.others.Add(1) }

func (c *counters) rewound() { c.rewinds.Add(1) }

// calledFor notes that a callback of an account was stored.
func (c *counters) calledFor(account string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.heard == nil {
		c.heard = map[string]time.Time{}
	}
	if _, known := c.heard[account]; known || len(c.heard) < maxAccounts {
		c.heard[account] = time.Now()
	}
}

// accounts returns those that something is known of.
func (c *counters) accounts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(c.heard)), maps.Keys(c.problems))
}

// of returns what is known of an account.
func (c *counters) of(account string) (lastCallback time.Time, problem error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard[account], c.problems[account]
}

// maxAccounts bounds the accounts whose errors and callbacks are kept.
const maxAccounts = 1000

// pulled counts a pull of an account.
func (c *counters) pulled(account string, err error) {
	if errors.Is(err, errTurn) {
		err = nil
	}
	switch {
	case err == nil:
		c.pulls.Add(1)
	case Code(err) == CodeLimited:
		c.limited.Add(1)
	default:
		c.pullsFailed.Add(1)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.problems, account)
		return
	}
	if c.problems == nil {
		c.problems = map[string]error{}
	}
	if _, known := c.problems[account]; known || len(c.problems) < maxAccounts {
		c.problems[account] = err
	}
}

func (c *counters) published(receipts []ferry.Receipt) {
	for _, r := range receipts {
		if r.Duplicate {
			c.duplicates.Add(1)
		} else {
			c.messages.Add(1)
		}
	}
}

// cutOff counts messages of which only the beginning was published, this time.
func (c *counters) cutOff(receipts []ferry.Receipt) {
	for _, r := range receipts {
		if r.Err == nil && !r.Duplicate {
			c.cut.Add(1)
		}
	}
}

// Stats returns what was counted.
func (p *Pipeline) Stats() Stats {
	c := &p.stats
	s := Stats{
		Callbacks: c.callbacks.Load(), Refused: c.refused.Load(), Failed: c.failed.Load(), Other: c.others.Load(),
		Pulls: c.pulls.Load(), PullsFailed: c.pullsFailed.Load(), Limited: c.limited.Load(), Rewound: c.rewinds.Load(),
		Messages: c.messages.Load(), Duplicates: c.duplicates.Load(), Cut: c.cut.Load(),
		TokenUntil: p.client.tokens.expiry(),
		Problems:   map[string]error{},
	}
	if at := c.lastCallback.Load(); at != 0 {
		s.LastCallback = time.Unix(0, at)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for account, err := range c.problems {
		s.Problems[account] = err
	}
	return s
}

// Lag is how much waits: pull jobs, and messages for each group that handles them.
type Lag struct {
	Pulls    int64
	Messages map[string]int64
}

// Lag asks the broker how much waits. A topic that nothing was published to has nothing.
func (p *Pipeline) Lag(ctx context.Context) (Lag, error) {
	l := Lag{Messages: map[string]int64{}}
	pulls, err := p.waiting(ctx, p.config.PullTopic)
	if err != nil {
		return l, err
	}
	for _, n := range pulls {
		l.Pulls += n
	}
	l.Messages, err = p.waiting(ctx, p.config.Topic)
	return l, err
}

// waiting returns what groups of a topic have not settled, dead letters not counted.
func (p *Pipeline) waiting(ctx context.Context, topic string) (map[string]int64, error) {
	waiting := map[string]int64{}
	s, err := p.broker.Driver().Stats(ctx, topic)
	if err != nil && !errors.Is(err, ferry.ErrNotFound) {
		return nil, err
	}
	for _, g := range s.Groups {
		waiting[g.Group] = g.Ready + g.Inflight + g.Waiting
	}
	return waiting, nil
}
