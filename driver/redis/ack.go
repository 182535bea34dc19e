package redis

import (
	"context"
	"strconv"

	"github.com/ferrymq/ferry/driver"
)

// ackAll acknowledges many messages by a script that compares leases as a whole and touches nothing one by one. It
// reports false when something is not plain, or not as it was believed to be: then nothing was changed.
func (s *subscription) ackAll(ctx context.Context, ss []driver.Settlement, run []int) (done bool, err error) {
	shard := ss[run[0]].Delivery.Token.(*token).shard
	r := s.d.requests.take()
	defer s.d.requests.giveBack(r)
	s.mu.Lock()
	args, tokens := s.ackArgs(r.name(), ss, run)
	s.mu.Unlock()
	if args == nil {
		return false, nil
	}
	reply, err := s.d.run(ctx, &s.d.scripts.ack, s.keys[shard], args...)
	if err != nil {
		return true, err
	}
	switch text(reply, 0) {
	case "slow":
		return false, nil
	case "ok":
	default:
		return true, errShape("ack", reply)
	}
	s.t.shards[shard].moved.Add(int64(len(tokens)))
	s.mu.Lock()
	for _, t := range tokens {
		s.drop(t)
	}
	s.mu.Unlock()
	return true, nil
}

// ackArgs returns the arguments of the script, or nil. The caller has the lock.
func (s *subscription) ackArgs(request string, ss []driver.Settlement, run []int) ([]any, []*token) {
	leaving := make(map[*token]bool, len(run))
	var leases []*token // one for each lease
	seen := map[*batchLease]bool{}
	tokens := make([]*token, 0, len(run))
	for _, i := range run {
		t := ss[i].Delivery.Token.(*token)
		if ss[i].Outcome != driver.Ack || t.batch == nil || t.maybe != "" || leaving[t] {
			return nil, nil
		}
		leaving[t] = true
		tokens = append(tokens, t)
		if !seen[t.batch] {
			seen[t.batch] = true
			leases = append(leases, t)
		}
	}
	bytes, keyed, sizes := 0, 0, make([]byte, 0, 5*len(tokens))
	for _, t := range tokens {
		if t.key != "" {
			keyed++
		}
		bytes += t.size
		sizes = append(strconv.AppendInt(sizes, int64(t.size), 10), ' ')
	}
	args := make([]any, 0, 8+3*len(leases)+3*len(tokens))
	args = append(args, request, len(tokens), -bytes, sizes, len(leases), keyed, -len(tokens), segments(tokens))
	for _, t := range leases {
		args = append(args, t.lease, t.batch.record(nil), t.batch.record(leaving))
	}
	for _, t := range tokens {
		args = append(args, t.seq)
	}
	for _, t := range tokens {
		args = append(args, t.id)
	}
	for _, t := range tokens {
		if t.key != "" {
			args = append(args, t.key)
		}
	}
	for _, t := range tokens {
		if t.own {
			args = append(args, t.id, t.seq)
		}
	}
	return args, tokens
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
