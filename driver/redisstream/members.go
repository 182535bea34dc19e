package redisstream

import (
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// How long a member that is not heard of owns its partitions: between minLife and maxLife.
const (
	minLife = 500 * time.Millisecond
	maxLife = 10 * time.Second
)

// calm is how long a member waits at most before it looks again who has come or gone: many may at once, and everybody
// is told of each.
const calm = 50 * time.Millisecond

// life is how long this member owns its partitions without being heard of: a part of the lease, so that they have a new
// owner when the leases of one who died end, also when the first who took over died as well.
func (s *subscription) life() time.Duration { return min(max(s.Options.Lease/4, minLife), maxLife) }

// beat is how often this member says that it lives. It is also the grace in which the member that should own a
// partition may take it, before anybody does.
func (s *subscription) beat() time.Duration { return s.life() / 5 }

// keepOwning renews membership and ownership, and moves partitions when members come and go, until ctx ends.
func (s *subscription) keepOwning(ctx context.Context) {
	for {
		timer := time.NewTimer(s.beat())
		select {
		case <-timer.C:
		case <-s.woken:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
		if err := s.balanceWhole(ctx); err != nil && ctx.Err() == nil {
			s.d.o.Logger.Warn("ferry: cannot renew ownership", "topic", s.Options.Topic, "group", s.Options.Group, "error", err)
		}
		redisconn.Pause(ctx, min(s.beat()/4, calm))
	}
}

// balanceWhole is never cut short: what was sent and not waited for could make us a member again after we have left.
func (s *subscription) balanceWhole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimPatience)
	defer cancel()
	return s.balance(ctx)
}

// rebalance makes keepOwning look at once.
func (s *subscription) rebalance() {
	select {
	case s.woken <- struct{}{}:
	default:
	}
}

// balance says that we live, in every partition, and owns those that are ours by the plan. The members that the servers
// answer with may change the plan, so that it is done again.
func (s *subscription) balance(ctx context.Context) error {
	s.balancing.Lock()
	defer s.balancing.Unlock()
	for range 3 {
		s.Mu.Lock()
		receives, closed := s.Gate.Receives(), s.Gate.Closed()
		s.Mu.Unlock()
		if closed { // whoever says that it lives is a member again
			return nil
		}
		plan := share(s.members, len(s.t.Parts))
		calls := make([]*scriptCall, len(s.t.Parts))
		for i, p := range s.t.Parts {
			mine := i < len(plan) && plan[i] == s.ID
			calls[i] = &scriptCall{part: p, script: &s.d.scripts.own, args: []any{s.Options.Group, s.ID,
				s.life().Milliseconds(), redisconn.Flag(mine), s.Options.Instance, s.beat().Milliseconds(),
				redisconn.Flag(!receives)}}
		}
		_ = s.d.runAll(ctx, calls)
		seen := map[string]bool{}
		for i, c := range calls {
			if c.err != nil {
				return c.err
			}
			if c.reply.Text(0) != "ok" {
				return redisshell.ErrStale
			}
			s.owns(i, c.reply.Text(1))
			for _, m := range c.reply.Texts(2) {
				seen[m] = true
			}
		}
		for i, c := range calls {
			if c.reply.Text(1) == "" || c.reply.Text(3) != "1" {
				continue
			}
			if err := s.retain(ctx, s.t.Parts[i], c.reply.Text(1)); err != nil {
				return err
			}
		}
		members := slices.Sorted(maps.Keys(seen))
		if slices.Equal(members, s.members) {
			return nil
		}
		s.members = members
	}
	return nil
}

// owns notes with which epoch we own a partition, or "" that we do not.
func (s *subscription) owns(i int, epoch string) {
	s.Mu.Lock()
	x := &s.assignments[i]
	taken := x.epoch != epoch && epoch != ""
	x.epoch = epoch
	s.Mu.Unlock()
	if taken {
		s.stir(i)
	}
}

// dispossess notes that a partition is not ours any more, and looks what is.
func (s *subscription) dispossess(i int, epoch string) {
	s.Mu.Lock()
	if s.assignments[i].epoch == epoch {
		s.assignments[i].epoch = ""
	}
	s.Mu.Unlock()
	s.rebalance()
}

// share plans which member owns which partition: by rendezvous hashing, so that everybody who knows the same members
// finds the same plan without a leader, and few partitions move when one comes or goes; but none gets more than its
// fair share.
func share(members []string, partitions int) []string {
	if len(members) == 0 {
		return nil
	}
	least, more := partitions/len(members), partitions%len(members)
	has := make(map[string]int, len(members))
	plan := make([]string, partitions)
	for i := range plan {
		best, weight := "", uint64(0)
		for _, m := range members {
			if has[m] > least || has[m] == least && more == 0 {
				continue
			}
			if w := weigh(m, i); best == "" || w > weight {
				best, weight = m, w
			}
		}
		if has[best] == least {
			more--
		}
		has[best]++
		plan[i] = best
	}
	return plan
}

func weigh(member string, partition int) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(partition), byte(partition >> 8)})
	_, _ = h.Write([]byte(member))
	x := h.Sum64() // FNV alone spreads the last bytes badly over the high bits
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// gone says why a subscription cannot go on when its topic or group is not there any more.
func (s *subscription) gone() error {
	return driver.NewError(driver.ErrClosed, "topic "+s.Options.Topic+" or group "+s.Options.Group+" was deleted",
		"subscribe again", nil)
}

// judge reads the answer to a call about deliveries, a letter for each: k is as it should be, s is to be settled
// otherwise, of any other the lease is lost. It calls each with the letters, 0 where nothing is known, under the lock.
func (s *subscription) judge(c *scriptCall, delivery func(int) *driver.Delivery, errs []error,
	each func(i int, t *token, letter byte)) {
	letters := c.reply.Text(1)
	if c.err == nil && (c.reply.Text(0) == "stale" || c.reply.Text(0) == "missing") {
		c.err = s.gone()
	} else if c.err == nil && len(letters) != len(c.about) {
		c.err = c.reply.ErrShape(c.script.Name)
	}
	s.Judge(c.about, letters, c.err, delivery, errs, each)
}
