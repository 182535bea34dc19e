package redis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// subscription is one member of a group, in all shards of its topic.
type subscription struct {
	redisshell.Member[*token]
	d    *Driver
	t    *topic
	keys [][]string // of the topic and the group, for each shard

	// these are guarded by the lock of the member
	turn      int                // which shard is claimed from first
	abandoned int                // claims under way for a Receive that was cancelled
	unseen    []*driver.Delivery // claimed for a Receive that was cancelled
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
	s := &subscription{d: d}
	if err := s.Join(ctx, d.shell.Refuse, o, d.caps, d.shell.NewToken()); err != nil {
		return nil, err
	}
	m := membership{group: s.Options.Group, order: s.Options.Order, fixed: true, member: s.ID}
	t, err := d.joinAll(ctx, o.Topic, m)
	if err != nil {
		return nil, err
	}
	s.t = t
	for _, sh := range t.Parts {
		s.keys = append(s.keys, sh.withGroup(s.Options.Group))
	}
	if err := d.shell.Add(s, func() {}); err != nil {
		_ = s.Close(ctx)
		return nil, err
	}
	return s, nil
}

// Close releases what is held to its old place, uncounted, and leaves the group.
func (s *subscription) Close(ctx context.Context) error {
	if !s.End() {
		return nil
	}
	s.d.shell.Remove(s)

	redisshell.Await(ctx, &s.claims)
	redisshell.Await(ctx, &s.drains) // what a Drain beside us gives back would be taken for seen
	err := s.giveBackUnseen(ctx)
	s.Mu.Lock()
	claims, begun := make([][]any, len(s.keys)), make([][]any, len(s.keys))
	seen := map[string]bool{}
	for t := range s.Held {
		if !seen[t.first] {
			seen[t.first] = true
			claims[t.shard] = append(claims[t.shard], "l"+t.first)
		}
	}
	for t := range s.Begun {
		begun[t.shard] = append(begun[t.shard], t.lease, t.seq)
	}
	clear(s.Held)
	clear(s.Begun)
	s.Mu.Unlock()
	if e := s.leave(ctx, claims, begun, s.ID); e != nil {
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
		for chunk := range slices.Chunk(begun[shard], 2*settleAtOnce) {
			run(shard, "", nil, chunk)
		}
		if member != "" {
			run(shard, member, nil, nil)
		}
	}
	return err
}
