package redisstream

import (
	"context"
	"strconv"

	"github.com/ferrymq/ferry/driver"
)

// ack ends plain deliveries, in one call to each partition, and returns those that turned out not to be plain.
func (s *subscription) ack(ctx context.Context, ss []driver.Settlement, acks map[*partition][]int, errs []error) map[*partition][]int {
	var calls []*scriptCall
	var orders [][]int
	for part, list := range acks {
		for len(list) > 0 {
			n := min(len(list), settleAtOnce)
			order, args := s.ackArgs(ss, list[:n])
			calls, orders = append(calls, &scriptCall{part: part, script: &s.d.scripts.ack, args: args}), append(orders, order)
			list = list[n:]
		}
	}
	s.d.runAll(ctx, calls)
	odd := map[*partition][]int{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, c := range calls {
		results := text(c.reply, 1)
		if c.err == nil && text(c.reply, 0) == "stale" {
			c.err = s.gone(errStale)
		} else if c.err == nil && len(results) != len(orders[n]) {
			c.err = errShape("ack", c.reply)
		}
		for at, i := range orders[n] {
			switch {
			case c.err != nil:
				errs[i] = c.err
				continue
			case results[at] == 's':
				odd[c.part] = append(odd[c.part], i)
				continue
			case results[at] != 'k':
				errs[i] = errLost(ss[i].Delivery)
			}
			delete(s.held, ss[i].Delivery.Token.(*token))
		}
	}
	return odd
}

// ackArgs are the arguments of lua/ack.lua, and the order in which it answers.
func (s *subscription) ackArgs(ss []driver.Settlement, run []int) ([]int, []any) {
	at := func(i int) *token { return ss[i].Delivery.Token.(*token) }
	order, leases, head := byLease(run, at, false)
	n := len(order)
	args := make([]any, 4+len(head)+2*n+2)
	copy(args, []any{s.o.Group, "acked", n, leases})
	copy(args[4:], head)
	base := 4 + len(head)
	total, sizes := 0, make([]byte, 0, 6*n)
	for k, i := range order {
		t := at(i)
		args[base+k], args[base+n+k] = t.id, t.name
		total += t.size
		sizes = append(strconv.AppendInt(sizes, int64(t.size), 10), ' ')
	}
	args[base+2*n], args[base+2*n+1] = total, sizes
	return order, args
}
