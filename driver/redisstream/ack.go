package redisstream

import (
	"context"
	"strconv"

	"github.com/ferrymq/ferry/driver"
)

// ack ends plain deliveries, and returns those that turned out not to be plain. What a partition has more of than one
// call takes follows only if all before it is done: nothing may end before another of its key.
func (s *subscription) ack(ctx context.Context, ss []driver.Settlement, acks map[*partition][]int,
	errs []error) map[*partition][]int {
	odd := map[*partition][]int{}
	for len(acks) > 0 {
		var calls []*scriptCall
		var orders [][]int
		for part, list := range acks {
			order, args := s.ackArgs(ss, list[:min(len(list), settleAtOnce)])
			calls, orders = append(calls, &scriptCall{part: part, script: &s.d.scripts.ack, args: args}), append(orders, order)
		}
		s.d.runAll(ctx, calls)
		for n, c := range calls {
			more := acks[c.part][len(orders[n]):]
			if rest := s.acked(c, ss, orders[n], errs); len(rest) > 0 {
				odd[c.part], more = append(rest, more...), nil
			}
			if c.err != nil {
				for _, i := range more {
					errs[i] = c.err
				}
				more = nil
			}
			if acks[c.part] = more; len(more) == 0 {
				delete(acks, c.part)
			}
		}
	}
	return odd
}

// acked reads the answer to one call, and returns what must be settled otherwise.
func (s *subscription) acked(c *scriptCall, ss []driver.Settlement, order []int, errs []error) (odd []int) {
	results := s.verdicts(c, len(order))
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, i := range order {
		switch {
		case c.err != nil:
			errs[i] = c.err
			continue
		case results[at] == 's':
			odd = append(odd, i)
			continue
		case results[at] != 'k':
			errs[i] = ss[i].Delivery.Lost(nil)
		}
		s.heard(ss[i].Delivery.Token.(*token))
	}
	return odd
}

// ackArgs are the arguments of lua/ack.lua, and the order in which it answers.
func (s *subscription) ackArgs(ss []driver.Settlement, run []int) ([]int, []any) {
	at := func(i int) *token { return ss[i].Delivery.Token.(*token) }
	order, leases, head := byLease(run, at, false)
	n := len(order)
	args := make([]any, 4+len(head)+2*n+4)
	copy(args, []any{s.o.Group, "acked", n, leases})
	copy(args[4:], head)
	base := 4 + len(head)
	total, sizes, took := 0, make([]byte, 0, 6*n), make([]byte, 0, 10*n)
	for k, i := range order {
		t := at(i)
		args[base+k], args[base+n+k] = &t.id, &t.name // as pointers: a text would be copied to be an argument
		total += t.size
		sizes = append(strconv.AppendInt(sizes, int64(t.size), 10), ' ')
		took = append(strconv.AppendInt(took, max(0, int64(ss[i].Took)), 10), ' ')
	}
	args[base+2*n], args[base+2*n+1], args[base+2*n+2], args[base+2*n+3] = total, sizes, took, s.o.Instance
	return order, args
}
