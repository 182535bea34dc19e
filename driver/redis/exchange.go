package redis

import (
	"context"
	"slices"
	"time"

	"github.com/ferrymq/ferry/internal/redisconn"
)

// attachedClaim is a claim that a settlement takes along for a Receive that waits, so that both are one call.
type attachedClaim struct {
	claimRequest                 // what is claimed
	before       time.Time       // the call, by our clock
	news         <-chan struct{} // at that time
	bound        bool            // there is no room for it unless the settlement succeeds
	done         chan struct{}
	reply        []any // once it is done
	err          error
}

// waiter is a Receive that has found nothing to claim.
type waiter struct {
	most  int
	claim chan *attachedClaim
}

// await waits until there may be something to claim, or a settlement takes the claim of this Receive along. It returns
// neither a claim nor an error in the first case.
func (s *subscription) await(ctx context.Context, most int, news <-chan struct{}) (*attachedClaim, error) {
	w := &waiter{most: most, claim: make(chan *attachedClaim, 1)}
	s.Mu.Lock()
	s.waiting = append(s.waiting, w)
	s.Mu.Unlock()
	select {
	case j := <-w.claim:
		return j, nil
	case <-news:
	case <-ctx.Done():
	}
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return nil, ctx.Err()
	}
	return <-w.claim, nil // that cannot be called off any more
}

// takeAlong returns a claim to go with an acknowledgement, for a Receive that waits, if that may find something then:
// room, or a key of which nothing is held any more. The caller has the lock.
func (s *subscription) takeAlong(shard int, leaving []*token) *attachedClaim {
	if len(s.waiting) == 0 || !s.Gate.Receives() || s.abandoned > 0 || len(s.unseen)+len(s.unknown) > 0 {
		return nil
	}
	room := s.Gate.Left(len(s.Held))
	if room > 0 && !freesKey(leaving) {
		return nil
	}
	before := room
	for _, t := range leaving {
		if s.Held[t] {
			room++
		}
	}
	w := s.waiting[0]
	most := min(w.most, claimMost, room)
	if most < 1 {
		return nil
	}
	s.waiting = s.waiting[1:]
	s.Gate.Reserve(most)
	s.claims.Add(1)
	j := &attachedClaim{claimRequest: claimRequest{shard, s.d.shell.NewToken(), most}, before: time.Now(),
		news:  s.Gate.News(),
		bound: most > before, done: make(chan struct{})}
	w.claim <- j
	return j
}

// freesKey reports whether nothing is held any more of a key of deliveries that leave. A run is in one lease, unless
// that was split.
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

// exchange sends an acknowledgement together with a claim, and returns the answer to the first; whoever waits for the
// claim gets the other.
func (s *subscription) exchange(ctx context.Context, ack []any, j *attachedClaim) (redisconn.Reply, error) {
	claim := s.claimArgs(j.claimRequest)
	args := make([]any, 0, len(claim)+1+len(ack))
	args = append(append(append(args, claim...), redisconn.Flag(j.bound)), ack...)
	reply, err := s.d.run(ctx, &s.d.scripts.exchange, s.keys[j.shard], args...)
	acked := reply.List(0)
	j.bound = j.bound && acked.Text(0) != "ok"
	j.reply, j.err = reply.List(1), err
	close(j.done)
	return acked, err
}

// answer waits for that of the claim.
func (j *attachedClaim) answer() (redisconn.Reply, error) {
	<-j.done
	return j.reply, j.err
}
