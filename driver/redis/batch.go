package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// batch is what one claim brought.
type batch struct {
	s *subscription
	claimRequest
	before  time.Time // the request, by our clock
	at      time.Time // the claim, by the server's
	claimed bool      // the server has made the lease
	short   bool      // it left nothing to claim
	ds      []*driver.Delivery
	dropped int // could not be delivered
	lease   *batchLease
	tokens  []token           // memory for tokens and deliveries, all at once
	made    []driver.Delivery // how many are used is the length of ds
}

// claim sends the request, unless it is under way with a settlement, and reads the answer.
func (b *batch) claim(ctx context.Context, j *attachedClaim) (err error) {
	s := b.s
	var reply redisconn.Reply
	alone := true
	if j != nil {
		b.before = j.before
		reply, err = j.answer()
		alone = err == nil && reply.Text(0) == "slow"
		if alone && j.bound {
			return nil
		}
	}
	if alone {
		b.before = time.Now()
		reply, err = s.d.run(ctx, &s.d.scripts.claim, s.keys[b.shard], s.claimArgs(b.claimRequest)...)
	}
	if err != nil {
		return err
	}
	switch reply.Text(0) {
	case "stale":
		return driver.NewError(driver.ErrClosed,
			fmt.Sprintf("topic %q or group %q was deleted", s.Options.Topic, s.Options.Group), "subscribe again", nil)
	case "ok":
		return b.read(ctx, reply)
	}
	return reply.ErrShape("claim")
}

// read turns the answer of a claim into deliveries.
func (b *batch) read(ctx context.Context, reply redisconn.Reply) error {
	ms, err := strconv.ParseInt(reply.Text(1), 10, 64)
	if err != nil {
		return reply.ErrShape("claim")
	}
	b.at = time.UnixMilli(ms)
	b.s.d.clock.saw(ms)
	sh := b.s.t.Parts[b.shard]
	if next, err := strconv.ParseInt(reply.Text(2), 10, 64); err == nil {
		b.s.d.scheduler.dueAt(sh, next)
	}
	lines := strings.Split(reply.Text(3), "\n")[1:]
	b.short = len(lines) < b.most
	if len(lines) == 0 {
		return nil
	}
	b.claimed = true
	items := make([]item, len(lines))
	for i, line := range lines {
		var ok bool
		if items[i], ok = parseItem(line); !ok {
			return reply.ErrShape("claim")
		}
	}
	b.lease = &batchLease{instance: b.s.Options.Instance, order: make([]*token, 0, len(items))}
	b.tokens, b.made, b.ds = make([]token, len(items)), make([]driver.Delivery, len(items)),
		make([]*driver.Delivery, 0, len(items))
	states, bodies, edited := reply.List(4), reply.List(5), reply.List(6)
	if len(bodies) == 0 { // there are too many for the script
		if bodies, err = sh.bodies(ctx, items); err != nil {
			return err
		}
	}
	for i, it := range items {
		body := bodies.Text(i)
		if err := b.add(ctx, it, cmp.Or(edited.Text(i), body), len(body), states.Text(i)); err != nil {
			return err
		}
	}
	return nil
}

// late reports whether the answer came so late that the claim must be asked for again: its lease is half over, or
// something in it has expired meanwhile.
func (b *batch) late() bool {
	now := time.Now()
	if now.Sub(b.before) > b.s.Options.Lease/2 {
		return true
	}
	for _, d := range b.ds {
		if expired(d, now) {
			return true
		}
	}
	return false
}

// bodies fetches envelopes without a script.
func (s *shard) bodies(ctx context.Context, items []item) (redisconn.Reply, error) {
	words := make([]any, 0, 2+len(items))
	words = append(words, "hmget", s.keys[keyBodies])
	for i := range items {
		words = append(words, &items[i].seq)
	}
	cmd := goredis.NewSliceCmd(ctx, words...)
	_ = s.d.client.Process(ctx, cmd) // the command keeps its error
	list, err := cmd.Result()
	return list, redisconn.Classify(err)
}

// add makes one delivery, or moves what cannot be decoded to the parse errors.
func (b *batch) add(ctx context.Context, it item, body string, size int, known string) error {
	s, n := b.s, len(b.ds)
	t := &b.tokens[n]
	*t = token{s: s, shard: b.shard, first: b.token, seq: it.seq, lease: b.token, claimed: b.before,
		until: b.before.Add(s.Options.Lease)}
	m, err := envelope.Decode(redisconn.Bytes(body))
	if err == nil {
		m.Topic, m.PublishedAt = s.Options.Topic, it.published
		err = m.ValidateStored()
	}
	if err != nil {
		b.dropped++
		return s.invalidate(ctx, t, err)
	}
	seq, _ := strconv.ParseUint(it.seq, 10, 64)
	d := &b.made[n]
	*d = driver.Delivery{Message: m, Group: s.Options.Group, Ref: s.t.Parts[b.shard].ref(seq), Attempt: 1, Deliveries: 1,
		ClaimedAt: b.at, LeaseUntil: t.until, Token: t}
	if st, ok := parseState(known); ok {
		d.Attempt, d.Deliveries, d.Cause = st.failed+1, st.lost+1, st.cause
	}
	t.batch, t.item, t.id, t.own, t.key, t.size = b.lease, it.text, m.ID, m.OwnID, it.key, size
	b.lease.order = append(b.lease.order, t)
	b.ds = append(b.ds, d)
	return nil
}

// invalidate moves a message that was just claimed to the parse errors of its topic.
func (s *subscription) invalidate(ctx context.Context, t *token, problem error) error {
	sh := s.t.Parts[t.shard]
	_, err := sh.overAll(ctx, &s.d.scripts.invalid, nil, s.Options.Group, t.lease, t.seq, problem.Error())
	return err
}

// claimArgs are what lua/claiming.lua reads.
func (s *subscription) claimArgs(a claimRequest) []any {
	o := &s.Options
	return []any{s.t.Parts[a.shard].of, a.token, a.most, o.Lease.Milliseconds(), o.MaxRun, o.Instance,
		s.Steps[0], s.Steps[1], s.Steps[2], s.Steps[3], inlineMost}
}

func isNil(err error) bool { return errors.Is(err, goredis.Nil) }
