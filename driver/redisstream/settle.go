package redisstream

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

// settleAtOnce bounds one script.
const settleAtOnce = 250

// Settle applies each settlement as one atomic step, in order.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := s.Member.Settle(ctx, ss, s.d.caps.MaxBody, s.emit, s.settleRun)
	s.Announce() // there is room for more
	return errs
}

// settleRun sends settlements: first the plain ones, which are acknowledgements that do not depend on another outcome
// of their key, then the rest in order.
func (s *subscription) settleRun(ctx context.Context, ss []driver.Settlement, run []int, errs []error,
	behind *refusal.Behind) {
	acks, rest := s.sort(ss, run)
	for part, list := range s.ack(ctx, ss, acks, errs) {
		rest[part] = append(rest[part], list...)
		slices.Sort(rest[part])
	}
	for _, i := range run { // what the rest may be behind of
		behind.Note(ss[i].Delivery, errs[i])
	}
	for part, list := range rest {
		for chunk := range slices.Chunk(list, settleAtOnce) {
			redisshell.Behind(ss, chunk, errs, behind, func(some []int) { s.settle(ctx, part, ss, some, errs) })
		}
		s.stir(part.index)
	}
}

// sort divides settlements by partition, and into acknowledgements and what must be done in order.
func (s *subscription) sort(ss []driver.Settlement, run []int) (acks, rest map[*partition][]int) {
	acks, rest = map[*partition][]int{}, map[*partition][]int{}
	type chain struct {
		part *partition
		key  string
		of   *token
	}
	behind := map[chain]bool{} // keys, or deliveries without one, with an outcome that those behind it depend on
	for _, i := range run {
		t := ss[i].Delivery.Token.(*token)
		c := chain{part: t.part, key: t.key}
		if t.key == "" {
			c.of = t
		}
		if ss[i].Outcome == driver.Ack && (len(behind) == 0 || !behind[c]) {
			acks[t.part] = append(acks[t.part], i)
			continue
		}
		rest[t.part] = append(rest[t.part], i)
		behind[c] = true
	}
	return acks, rest
}

// settle sends settlements of one partition.
func (s *subscription) settle(ctx context.Context, part *partition, ss []driver.Settlement, run []int, errs []error) {
	args := []any{s.Options.Group, s.Options.Instance, len(run)}
	for _, i := range run {
		x := &ss[i]
		t := x.Delivery.Token.(*token)
		args = append(args, t.id, t.lease, redisshell.Outcome(x), redisconn.Milliseconds(x.After),
			redisshell.Failure(x, s.Options.Instance), max(0, int64(x.Took)))
	}
	c := &scriptCall{part: part, script: &s.d.scripts.settle, args: args, about: run}
	_ = s.d.runAll(ctx, []*scriptCall{c})
	delivery := func(i int) *driver.Delivery { return ss[i].Delivery }
	s.judge(c, delivery, errs, func(_ int, t *token, letter byte) {
		if letter != 0 {
			s.heard(t)
		}
	})
	s.Ended(part.index, c.reply.Texts(2), s.heard)
}

// emit publishes follow-ups if the delivery is still held. That is not one step with the settlement; their ids derive
// from the parent's, so that a repeat is a duplicate.
func (s *subscription) emit(ctx context.Context, x *driver.Settlement) (done bool, err error) {
	t := x.Delivery.Token.(*token)
	reply, err := t.part.run(ctx, &s.d.scripts.settle, s.Options.Group, s.Options.Instance, 1, t.id, t.lease, "?", 0, "",
		0)
	if err != nil {
		return false, err
	}
	if reply.Text(1) != "k" {
		return false, x.Delivery.Lost(nil)
	}
	p := s.d.publication(x.Emit, driver.PublishOptions{})
	p.Force = true
	p.run(ctx)
	return false, redisshell.Unfull(refusal.Of(p.Receipts))
}
