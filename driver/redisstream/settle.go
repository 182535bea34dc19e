package redisstream

import (
	"context"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
	"github.com/ferrymq/ferry/internal/refusal"
)

const (
	settlePatience = 30 * time.Second // bounds a settlement, which stands even when its caller gives up
	settleAtOnce   = 250              // bounds one script
)

// Settle applies each settlement as one step, in order.
func (s *subscription) Settle(ctx context.Context, ss []driver.Settlement) []error {
	errs := make([]error, len(ss))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settlePatience)
	defer cancel()
	run := make([]int, 0, len(ss)) // settlements that wait to be sent
	var behind refusal.Behind
	for i := range ss {
		err := s.checked(&ss[i])
		if err == nil && len(ss[i].Emit) > 0 {
			s.settleRun(ctx, ss, run, errs, &behind)
			run = run[:0]
		}
		if err == nil {
			err = behind.Refuse(ss[i].Delivery)
		}
		if err == nil && len(ss[i].Emit) > 0 {
			err = s.emit(ctx, ss[i].Delivery, ss[i].Emit)
		}
		if errs[i] = err; err != nil {
			behind.Note(ss[i].Delivery, err)
			continue
		}
		run = append(run, i)
	}
	s.settleRun(ctx, ss, run, errs, &behind)
	s.announce() // there is room for more
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
			chunk = slices.DeleteFunc(slices.Clone(chunk), func(i int) bool {
				errs[i] = behind.Refuse(ss[i].Delivery)
				return errs[i] != nil
			})
			if len(chunk) > 0 {
				s.settle(ctx, part, ss, chunk, errs)
			}
			for _, i := range chunk {
				behind.Note(ss[i].Delivery, errs[i])
			}
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

// checked says why a settlement cannot be sent.
func (s *subscription) checked(x *driver.Settlement) error {
	if err := x.Check(s.d.caps.MaxBody); err != nil {
		return err
	}
	_, err := s.tokenOf(x.Delivery)
	return err
}

// tokenOf returns the token of a delivery that this subscription received.
func (s *subscription) tokenOf(d *driver.Delivery) (*token, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	t, ok := d.Token.(*token)
	s.mu.Lock()
	err := s.gate.RefuseSettle()
	s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case !ok || t.s != s:
		return nil, d.Lost(nil)
	}
	return t, nil
}

// settle sends settlements of one partition.
func (s *subscription) settle(ctx context.Context, part *partition, ss []driver.Settlement, run []int, errs []error) {
	args := []any{s.o.Group, s.o.Instance, len(run)}
	for _, i := range run {
		x := &ss[i]
		t := x.Delivery.Token.(*token)
		args = append(args, t.id, t.lease, redisshell.Outcome(x), redisconn.Milliseconds(x.After),
			redisshell.Failure(x, s.o.Instance), max(0, int64(x.Took)))
	}
	c := &scriptCall{part: part, script: &s.d.scripts.settle, args: args}
	s.d.runAll(ctx, []*scriptCall{c})
	ended := map[string]bool{}
	for _, id := range c.reply.Texts(2) {
		ended[id] = true
	}
	delivery := func(i int) *driver.Delivery { return ss[i].Delivery }
	s.judge(c, run, delivery, errs, func(_ int, t *token, letter byte) {
		if letter != 0 {
			s.heard(t)
		}
	})
	if len(ended) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for t := range s.held {
		if t.part == part && ended[t.id] {
			s.heard(t)
		}
	}
}

// emit publishes follow-ups if the delivery is still held. That is not one step with the settlement; their ids derive
// from the parent's, so that a repeat is a duplicate.
func (s *subscription) emit(ctx context.Context, d *driver.Delivery, msgs []*driver.Message) error {
	t := d.Token.(*token)
	reply, err := t.part.run(ctx, &s.d.scripts.settle, s.o.Group, s.o.Instance, 1, t.id, t.lease, "?", 0, "", 0)
	if err != nil {
		return err
	}
	if reply.Text(1) != "k" {
		return d.Lost(nil)
	}
	p := &publication{d: s.d, msgs: msgs, rs: make([]driver.Receipt, len(msgs)), turn: s.d.shell.Count(), force: true}
	p.run(ctx)
	return redisshell.Unfull(refusal.Of(p.rs))
}
