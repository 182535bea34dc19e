package redis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// subscription is one member of a group, in all shards of its topic.
type subscription struct {
	d     *Driver
	o     driver.SubscribeOptions
	t     *topic
	keys  [][]string // of the topic and the group, for each shard
	steps [4]any     // how far one claim moves each lane
	id    string     // as a member of the group

	mu        sync.Mutex
	gate      redisshell.Gate    // whether to claim
	turn      int                // which shard is claimed from first
	held      map[*token]bool    // what we believe to hold
	begun     map[*token]bool    // what has begun, and was neither settled nor told to be lost
	abandoned int                // claims under way for a Receive that was cancelled
	stray     []*driver.Delivery // claimed for a Receive that was cancelled
	unknown   []claimRequest     // claims whose answer did not come
	waiting   []*waiter          // calls of Receive that have found nothing
	claims    sync.WaitGroup     // under way
	drains    sync.WaitGroup     // likewise
}

// claimRequest is one claim from one shard.
type claimRequest struct {
	shard int
	token string // of the lease that it makes
	most  int
}

// memberLife is how long a member counts after its process was last heard of.
const memberLife = 45 * time.Second

// Subscribe joins a group, and creates topic and group if they do not exist.
func (d *Driver) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	o, err := o.Resolve(d.caps)
	if err != nil {
		return nil, err
	}
	if err := d.shell.Refuse(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &subscription{d: d, o: o, id: d.shell.NewToken(), steps: redisshell.Steps(o),
		gate: redisshell.NewGate(o.MaxInflight), held: map[*token]bool{}, begun: map[*token]bool{}}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := d.shell.Add(s, func() {}); err != nil {
		_ = s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// enter makes the subscription a member of its group in every shard.
func (s *subscription) enter(ctx context.Context) error {
	for range staleTries {
		t, err := s.d.ensure(ctx, s.o.Topic, 0)
		if err != nil {
			return err
		}
		m := membership{group: s.o.Group, order: s.o.Order, fixed: true, member: s.id}
		s.t, s.keys = t, nil
		for _, sh := range t.shards {
			if _, err = sh.join(ctx, m); err != nil {
				break
			}
			s.keys = append(s.keys, sh.withGroup(s.o.Group))
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, driver.ErrConflict) || len(s.keys) > 0 {
			return err
		}
		s.d.topics.Forget(t) // perhaps it was made anew with other shards
		again, e := s.d.topics.Lookup(ctx, s.o.Topic)
		if e != nil || again == nil || len(again.shards) == len(t.shards) {
			return err
		}
	}
	return driver.NewError(driver.ErrNotApplied, "the topic keeps changing", "subscribe again", nil)
}

// belongs reports whether it is of a topic, and of a group, if one is named.
func (s *subscription) belongs(topic, group string) bool {
	return s.o.Topic == topic && (group == "" || s.o.Group == group)
}

// announce tells waiting calls that there may be something to claim.
func (s *subscription) announce() {
	s.mu.Lock()
	s.gate.Announce()
	s.mu.Unlock()
}

// Close releases what is held to its old place, uncounted, and leaves the group.
func (s *subscription) Close(ctx context.Context) error {
	s.mu.Lock()
	first := s.gate.Close()
	s.mu.Unlock()
	if !first {
		return nil
	}
	s.d.shell.Remove(s)

	redisshell.Await(ctx, &s.claims)
	redisshell.Await(ctx, &s.drains) // what a Drain beside us gives back would be taken for seen
	err := s.giveBackUnseen(ctx)
	s.mu.Lock()
	claims, begun := make([][]any, len(s.keys)), make([][]any, len(s.keys))
	seen := map[string]bool{}
	for t := range s.held {
		if !seen[t.first] {
			seen[t.first] = true
			claims[t.shard] = append(claims[t.shard], "l"+t.first)
		}
	}
	for t := range s.begun {
		begun[t.shard] = append(begun[t.shard], t.lease, t.seq)
	}
	s.held, s.begun = map[*token]bool{}, map[*token]bool{}
	s.mu.Unlock()
	if e := s.leave(ctx, claims, begun, s.id); e != nil {
		err = e
	}
	return err
}

// claimsAtOnce bounds how many claims one script returns.
const claimsAtOnce = 20

// leave returns claims, says that the holder of deliveries that had begun lives, and ends the membership, if one is
// named.
func (s *subscription) leave(ctx context.Context, claims, begun [][]any, member string) error {
	var err error
	run := func(shard int, member string, claims, begun []any) {
		args := append(append([]any{member, len(claims)}, claims...), begun...)
		if _, e := s.d.run(ctx, &s.d.scripts.leave, s.keys[shard], args...); e != nil {
			err = e
		}
	}
	for shard := range s.keys {
		for chunk := range slices.Chunk(claims[shard], claimsAtOnce) {
			run(shard, "", chunk, nil)
		}
		if begun != nil {
			for chunk := range slices.Chunk(begun[shard], 2*settleAtOnce) {
				run(shard, "", nil, chunk)
			}
		}
		if member != "" {
			run(shard, member, nil, nil)
		}
	}
	return err
}
