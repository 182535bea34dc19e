package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

// emit publishes follow-ups. Where all of them belong to the shard of the delivery this is one step with its
// settlement, and done; otherwise they are published if the delivery is still held, and the settlement follows. Their
// ids derive from the parent's, so that a repeat is a duplicate.
func (s *subscription) emit(ctx context.Context, x *driver.Settlement) (done bool, err error) {
	t := x.Delivery.Token.(*token)
	if s.here(t, x.Emit) {
		return true, redisshell.Unfull(s.emitHere(ctx, t, x))
	}
	if err := s.check(ctx, x.Delivery); err != nil {
		return false, err
	}
	p := s.d.publication(x.Emit, driver.PublishOptions{})
	p.Force = true
	p.run(ctx)
	return false, redisshell.Unfull(refusal.Of(p.Receipts))
}

// here reports whether all follow-ups can be stored in the shard of the delivery.
func (s *subscription) here(t *token, msgs []*driver.Message) bool {
	bytes := 0
	for _, m := range msgs {
		if m.Topic != s.Options.Topic || s.t.For(m, uint64(t.shard)) != s.t.Parts[t.shard] {
			return false
		}
		bytes += len(m.Body)
	}
	return len(msgs) <= publishAtOnce && bytes <= publishBytes
}

func (s *subscription) emitHere(ctx context.Context, t *token, x *driver.Settlement) error {
	p := newShardPublish(s.t.Parts[t.shard], nil, len(x.Emit))
	for i, m := range x.Emit {
		p.add(i, m)
	}
	r := s.d.requests.take()
	defer s.d.requests.giveBack(r)
	args := []any{s.Options.Group, r.name(), s.leaseOf(t), t.seq, redisshell.Outcome(x), redisconn.Milliseconds(x.After),
		redisshell.Failure(x, s.Options.Instance), s.Options.Instance}
	reply, err := p.shard.overAll(ctx, &s.d.scripts.emit, nil, p.appendTo(args, r.name(), "f", "")...)
	if err != nil {
		return err
	}
	s.Ended(t.shard, reply.Texts(1), s.drop)
	s.Mu.Lock()
	s.Gate.Refilled()
	s.drop(t)
	s.Mu.Unlock()
	if reply.Text(0) != "k" {
		return x.Delivery.Lost(nil)
	}
	return nil
}

// leaseOf returns the lease that a delivery was in last.
func (s *subscription) leaseOf(t *token) string {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return t.lease
}

// check says whether a delivery is still held.
func (s *subscription) check(ctx context.Context, d *driver.Delivery) error {
	t := d.Token.(*token)
	reply, err := s.d.run(ctx, &s.d.scripts.check, s.keys[t.shard], s.leaseOf(t), t.seq)
	if err != nil || reply.Text(0) == "k" {
		return err
	}
	s.Mu.Lock()
	s.drop(t)
	s.Mu.Unlock()
	return d.Lost(nil)
}
