package redis

import (
	"context"
	"slices"
	"strconv"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// ackAll acknowledges many messages by a script that compares leases as a whole and touches nothing one by one. It
// reports false when something is not plain, or not as it was believed to be: then nothing was changed.
func (s *subscription) ackAll(ctx context.Context, ss []driver.Settlement, run []int) (done bool, err error) {
	shard := ss[run[0]].Delivery.Token.(*token).shard
	r := s.d.requests.take()
	defer s.d.requests.giveBack(r)
	args, with := s.depart(r.name(), shard, ss, run)
	if args == nil {
		return false, nil
	}
	var reply redisconn.Reply
	if with != nil {
		reply, err = s.exchange(ctx, args, with)
	} else {
		reply, err = s.d.run(ctx, &s.d.scripts.ack, s.keys[shard], args...)
	}
	if err != nil {
		return true, err
	}
	switch reply.Text(0) {
	case "slow":
		return false, nil
	case "ok":
	default:
		return true, reply.ErrShape("ack")
	}
	s.t.Parts[shard].moved.Add(int64(len(run)))
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, i := range run {
		t := ss[i].Delivery.Token.(*token)
		if t.key != "" && with == nil { // the next of its key may go
			s.Gate.Refilled()
		}
		s.drop(t)
	}
	return true, nil
}

// depart returns what lua/acking.lua reads, or nil, and a claim that may go with it.
func (s *subscription) depart(request string, shard int, ss []driver.Settlement, run []int) (args []any,
	with *attachedClaim) {
	tokens := make([]*token, 0, len(run))
	s.Mu.Lock()
	defer s.Mu.Unlock()
	defer func() {
		for _, t := range tokens {
			t.leaving = false
		}
	}()
	for _, i := range run {
		t := ss[i].Delivery.Token.(*token)
		if ss[i].Outcome != driver.Ack || t.batch == nil || t.leaving {
			return nil, nil
		}
		t.leaving = true
		tokens = append(tokens, t)
	}
	return ackArgs(request, tokens), s.takeAlong(shard, tokens)
}

// ackArgs lists what leaves. The caller has the lock.
func ackArgs(request string, tokens []*token) []any {
	var leases []*token // one for each lease
	bytes, keyed, sizes := 0, 0, make([]byte, 0, 5*len(tokens))
	for _, t := range tokens {
		if !slices.ContainsFunc(leases, func(l *token) bool { return l.batch == t.batch }) {
			leases = append(leases, t)
		}
		if t.key != "" {
			keyed++
		}
		bytes += t.size
		sizes = append(strconv.AppendInt(sizes, int64(t.size), 10), ' ')
	}
	args := make([]any, 0, 8+3*len(leases)+3*len(tokens))
	args = append(args, request, len(tokens), -bytes, sizes, len(leases), keyed, -len(tokens), segments(tokens))
	for _, t := range leases {
		is, will := t.batch.record()
		args = append(args, t.lease, is, will)
	}
	for _, t := range tokens {
		args = append(args, &t.seq)
	}
	ids := make([]scriptArg, len(tokens))
	arena := make([]byte, 0, 17*len(tokens))
	for i, t := range tokens {
		start := len(arena)
		arena = appendIndexID(arena, t.id)
		ids[i] = arena[start:len(arena):len(arena)]
	}
	args = appendArgs(args, ids)
	for _, t := range tokens {
		if t.key != "" {
			args = append(args, &t.key)
		}
	}
	for i, t := range tokens {
		if t.own {
			args = append(args, &ids[i], &t.seq)
		}
	}
	return args
}

// segments counts, negatively, how many of the messages are in each segment of the sequence.
func segments(tokens []*token) []byte {
	counts := map[uint64]int{}
	for _, t := range tokens {
		seq, _ := strconv.ParseUint(t.seq, 10, 64)
		counts[seq/1024]--
	}
	var text []byte
	for segment, n := range counts {
		text = append(strconv.AppendUint(text, segment, 10), ' ')
		text = append(strconv.AppendInt(text, int64(n), 10), ' ')
	}
	return text
}
