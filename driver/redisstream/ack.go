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
		for part, list := range acks {
			order, args := s.ackArgs(ss, list[:min(len(list), settleAtOnce)])
			calls = append(calls, &scriptCall{part: part, script: &s.d.scripts.ack, args: args, about: order})
		}
		_ = s.d.runAll(ctx, calls)
		for _, c := range calls {
			more := acks[c.part][len(c.about):]
			if rest := s.acked(c, ss, errs); len(rest) > 0 {
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
func (s *subscription) acked(c *scriptCall, ss []driver.Settlement, errs []error) (odd []int) {
	delivery := func(i int) *driver.Delivery { return ss[i].Delivery }
	s.judge(c, delivery, errs, func(i int, t *token, letter byte) {
		switch letter {
		case 0:
		case 's':
			odd = append(odd, i)
		default:
			s.heard(t)
		}
	})
	return odd
}

// ackArgs are the arguments of lua/ack.lua, and the order in which it answers.
func (s *subscription) ackArgs(ss []driver.Settlement, run []int) ([]int, []any) {
	at := func(i int) *token { return ss[i].Delivery.Token.(*token) }
	leases, n := byLease(run, at), len(run)
	order, args := make([]int, 0, n), make([]any, 4, 8+3*len(leases)+2*n)
	copy(args, []any{s.Options.Group, "acked", n, len(leases)})
	for _, of := range leases {
		args = append(args, at(of[0]).lease, len(of), placesOf(of, at))
		order = append(order, of...)
	}
	total, sizes, took := 0, make([]byte, 0, 6*n), make([]byte, 0, 10*n)
	for _, i := range order {
		t := at(i)
		args = append(args, &t.id) // as a pointer: a text would be copied to be an argument
		total += t.size
		sizes = append(strconv.AppendInt(sizes, int64(t.size), 10), ' ')
		took = append(strconv.AppendInt(took, max(0, int64(ss[i].Took)), 10), ' ')
	}
	for _, i := range order {
		args = append(args, &at(i).name)
	}
	return order, append(args, total, sizes, took, s.Options.Instance)
}

// placesOf tells where deliveries are in their claim, as ranges, if that is noted whole.
func placesOf(of []int, at func(int) *token) []byte {
	var text []byte
	for k := 0; k < len(of) && at(of[0]).place > 0; {
		first, n := at(of[k]).place, 1
		for k+n < len(of) && at(of[k+n]).place == first+n {
			n++
		}
		text = append(strconv.AppendInt(text, int64(first), 10), '-')
		text = append(strconv.AppendInt(text, int64(first+n-1), 10), ' ')
		k += n
	}
	return text
}
