package redis

import (
	"context"
	"slices"
	"sync"
	"time"
)

// callsAtOnce is how many calls of a subscription to one shard are under way. What comes meanwhile waits, and goes together.
const callsAtOnce = 2

// desk sends the claims and acknowledgements of a subscription to one shard. A claim and an acknowledgement that wait at the same time
// become one call.
type desk struct {
	s     *subscription
	shard int

	mu     sync.Mutex
	busy   int // calls under way
	acks   []*errand
	claims []*errand
}

// errand is one acknowledgement or one claim.
type errand struct {
	args  []any
	bound bool          // a claim: there is room for it only behind the acknowledgement that it goes with
	turn  chan exchange // its caller is to send this, which it is part of, or to take its answer if that is empty
	reply []any
	err   error
}

func newErrand(args []any) *errand { return &errand{args: args, turn: make(chan exchange, 1)} }

// exchange is what goes in one call: an acknowledgement, a claim, or both.
type exchange struct{ ack, claim *errand }

// acknowledge sends an acknowledgement, perhaps with a claim that comes with it, and returns the answer.
func (k *desk) acknowledge(ctx context.Context, args []any, with *joint) ([]any, error) {
	e := newErrand(args)
	if with != nil { // its caller waits for it already
		k.send(ctx, exchange{e, with.claim})
		with.claim.turn <- exchange{}
		return e.reply, e.err
	}
	k.mu.Lock()
	k.acks = append(k.acks, e)
	k.mu.Unlock()
	return k.await(ctx, e)
}

// claim sends a claim, perhaps with an acknowledgement that waits, and returns the answer.
func (k *desk) claim(ctx context.Context, args []any) ([]any, error) {
	e := newErrand(args)
	k.mu.Lock()
	k.claims = append(k.claims, e)
	k.mu.Unlock()
	return k.await(ctx, e)
}

// await lets an errand that waits have its turn.
func (k *desk) await(ctx context.Context, e *errand) ([]any, error) {
	k.next(false)
	x := <-e.turn
	if x == (exchange{}) {
		return e.reply, e.err
	}
	k.send(ctx, x)
	k.next(true)
	for _, other := range []*errand{x.ack, x.claim} {
		if other != nil && other != e {
			other.turn <- exchange{}
		}
	}
	return e.reply, e.err
}

// next has what waits sent by one of its callers, as far as calls may be under way. One is over, if so.
func (k *desk) next(over bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if over {
		k.busy--
	}
	if k.busy >= callsAtOnce || len(k.acks)+len(k.claims) == 0 {
		return
	}
	var x exchange
	if len(k.acks) > 0 {
		x.ack, k.acks = k.acks[0], k.acks[1:]
	}
	if len(k.claims) > 0 {
		x.claim, k.claims = k.claims[0], k.claims[1:]
	}
	k.busy++
	if x.ack != nil {
		x.ack.turn <- x
	} else {
		x.claim.turn <- x
	}
}

// send makes one call, and notes the answers. What the script of both finds not simple has to go alone: a claim's caller sends it again.
func (k *desk) send(ctx context.Context, x exchange) {
	d, keys := k.s.d, k.s.keys[k.shard]
	switch {
	case x.claim == nil:
		x.ack.reply, x.ack.err = d.run(ctx, &d.scripts.ack, keys, x.ack.args...)
	case x.ack == nil:
		x.claim.reply, x.claim.err = d.run(ctx, &d.scripts.claim, keys, x.claim.args...)
	default:
		args := make([]any, 0, len(x.claim.args)+1+len(x.ack.args))
		args = append(append(append(args, x.claim.args...), flag(x.claim.bound)), x.ack.args...)
		reply, err := d.run(ctx, &d.scripts.exchange, keys, args...)
		x.ack.err, x.claim.err = err, err
		if err == nil {
			x.ack.reply, x.claim.reply = list(reply, 0), list(reply, 1)
		}
	}
}

// joint is a claim that a settlement takes along for a Receive that waits.
type joint struct {
	shard  int
	name   string // of the lease
	most   int
	before time.Time // the call, by our clock
	claim  *errand
}

// waiter is a Receive that has found nothing to claim.
type waiter struct {
	most  int
	joint chan *joint
}

// await waits until there may be something to claim, or a settlement takes the claim of this Receive along. It returns neither a claim nor an error in
// the first case.
func (s *subscription) await(ctx context.Context, most int, news <-chan struct{}) (*joint, error) {
	w := &waiter{most: most, joint: make(chan *joint, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	select {
	case j := <-w.joint:
		return j, nil
	case <-news:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return nil, ctx.Err()
	}
	return <-w.joint, nil // that cannot be called off any more
}

// takeAlong returns a claim to go with an acknowledgement, for a Receive that waits, if that may find something then: room, or a key
// of which nothing is held any more. The caller has the lock.
func (s *subscription) takeAlong(shard int, leaving []*token) *joint {
	if len(s.waiting) == 0 || s.closed || s.abandoned > 0 || len(s.stray)+len(s.unknown) > 0 {
		return nil
	}
	room := s.o.MaxInflight - len(s.held) - s.reserved
	if room > 0 && !freesKey(leaving) {
		return nil
	}
	w := s.waiting[0]
	j := &joint{shard: shard, name: s.d.newToken(), most: min(w.most, claimMost, room+len(leaving)), before: time.Now()}
	if j.most < 1 {
		return nil
	}
	s.waiting = s.waiting[1:]
	s.reserved += j.most
	s.claims.Add(1)
	j.claim = newErrand(s.claimArgs(shard, j.name, j.most))
	j.claim.bound = j.most > room
	w.joint <- j
	return j
}

// freesKey reports whether nothing is held any more of a key of deliveries that leave. A run is in one lease, unless that was split.
func freesKey(leaving []*token) bool {
	staying := map[string]bool{}
	var looked *batchLease
	for _, t := range leaving {
		if t.key == "" || looked == t.batch {
			continue
		}
		looked = t.batch
		for _, other := range looked.order {
			if !other.leaving {
				staying[other.key] = true
			}
		}
	}
	return slices.ContainsFunc(leaving, func(t *token) bool { return t.key != "" && !staying[t.key] })
}

// claimArgs are what lua/claiming.lua reads.
func (s *subscription) claimArgs(shard int, name string, most int) []any {
	return []any{s.t.shards[shard].of, name, most, s.o.Lease.Milliseconds(), s.o.MaxRun, s.o.Instance,
		s.steps[0], s.steps[1], s.steps[2], s.steps[3], inlineMost}
}

// answer waits for the answer of a claim that was taken along. It is empty when there was no room for it after all.
func (j *joint) answer() ([]any, error) {
	<-j.claim.turn
	return j.claim.reply, j.claim.err
}
