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
func (s *subscription) emit(ctx context.Context, t *token, x *driver.Settlement) (done bool, err error) {
	if s.here(t, x.Emit) {
		return true, s.emitHere(ctx, t, x)
	}
	if err := s.check(ctx, x.Delivery); err != nil {
		return false, err
	}
	p := &publication{d: s.d, msgs: x.Emit, rs: make([]driver.Receipt, len(x.Emit)), turn: s.d.shell.Count(), force: true}
	p.run(ctx)
	return false, redisshell.Unfull(refusal.Of(p.rs))
}

// here reports whether all follow-ups can be stored in the shard of the delivery.
func (s *subscription) here(t *token, msgs []*driver.Message) bool {
	bytes := 0
	for _, m := range msgs {
		if m.Topic != s.o.Topic || s.t.shardFor(m, uint64(t.shard)) != s.t.shards[t.shard] {
			return false
		}
		bytes += len(m.Body)
	}
	return len(msgs) <= publishAtOnce && bytes <= publishBytes
}

func (s *subscription) emitHere(ctx context.Context, t *token, x *driver.Settlement) error {
	shardPublish := newShardPublish(s.t, s.t.shards[t.shard], nil, len(x.Emit))
	for i, m := range x.Emit {
		shardPublish.add(i, m)
	}
	return redisshell.Unfull(s.sendEmit(ctx, t, x, shardPublish))
}

func (s *subscription) sendEmit(ctx context.Context, t *token, x *driver.Settlement, p *shardPublish) error {
	r := s.d.requests.take()
	defer s.d.requests.giveBack(r)
	lease := s.leaseOf(t)
	reply, err := p.shard.overAll(ctx, &s.d.scripts.emit, func(g *groups) []any {
		args := []any{r.name(), offsetText(g, s.o.Group), lease, t.seq, redisshell.Outcome(x),
			redisconn.Milliseconds(x.After),
			redisshell.Failure(x, s.o.Instance), s.o.Instance}
		return p.appendTo(args, r.name(), "f", "")
	})
	if err != nil {
		return err
	}
	s.ended(t.shard, reply.Texts(1))
	s.mu.Lock()
	s.gate.Refilled()
	s.drop(t)
	s.mu.Unlock()
	if reply.Text(0) != "k" {
		return x.Delivery.Lost(nil)
	}
	return nil
}

// leaseOf returns the lease that a delivery was in last.
func (s *subscription) leaseOf(t *token) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.lease
}

// check says whether a delivery is still held.
func (s *subscription) check(ctx context.Context, d *driver.Delivery) error {
	t := d.Token.(*token)
	reply, err := s.d.run(ctx, &s.d.scripts.check, s.keys[t.shard], s.leaseOf(t), t.seq)
	if err != nil || reply.Text(0) == "k" {
		return err
	}
	s.mu.Lock()
	s.drop(t)
	s.mu.Unlock()
	return d.Lost(nil)
}
