package redis

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
)

// taking is a Take with the name of its request.
type taking struct {
	store.Take
	number uint64
}

// Take implements store.Limits.
func (s *Store) Take(ctx context.Context, t store.Take) (guard.Verdict, error) {
	return s.takes.do(ctx, taking{Take: t, number: s.next()})
}

func (s *Store) sendTakes(ctx context.Context, qs []taking) ([]guard.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	names := []string{s.keys.index(guard.KindBlocked), s.keys.rules()}
	args := []any{s.name(s.next())}
	for _, q := range qs {
		args = append(args, s.name(q.number), q.ID, q.Age.Microseconds(), flag(q.Peek), len(q.Items))
		for _, item := range q.Items {
			names = append(names, s.keys.account(item.Limit, item.Key), s.keys.window(item.Limit, item.Key),
				s.keys.waits(item.Limit, item.Key))
			args = append(args, member(item.Limit, item.Key), pack(item.Rule), item.RuleName, flag(item.Paced))
		}
	}
	reply, err := s.run(ctx, scriptTake, names, args...)
	if err != nil {
		return nil, err
	}
	const width = 7
	n, err := numbers(reply, width, len(qs))
	if err != nil {
		return nil, err
	}
	out := make([]guard.Verdict, len(qs))
	for i := range qs {
		one := n[i*width : (i+1)*width]
		out[i] = guard.Verdict{Admitted: one[0] == 1, Ticket: qs[i].number, Item: int(one[1]), Blocked: one[2] == 1,
			After: micros(one[3]), Violations: int(one[4]), Penalty: micros(one[5]), Step: micros(one[6])}
	}
	return out, nil
}

// Return implements store.Limits.
func (s *Store) Return(ctx context.Context, t store.Take, ticket uint64) error {
	names, args := []string{s.keys.rules()}, []any{s.name(ticket)}
	for _, item := range t.Items {
		names = append(names, s.keys.account(item.Limit, item.Key), s.keys.window(item.Limit, item.Key))
		args = append(args, pack(item.Rule), item.RuleName)
	}
	_, err := s.run(ctx, scriptReturn, names, args...)
	return err
}

// flag writes a bool as the scripts read it.
func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// member is how indexes name a key. Names of limits contain no colon.
func member(limit, key string) string { return limit + ":" + key }

func splitMember(m string) (limit, key string) {
	limit, key, _ = strings.Cut(m, ":")
	return limit, key
}

// micros reads a duration of the scripts; less than zero is for ever.
func micros(n int64) time.Duration {
	if n < 0 {
		return guard.Forever
	}
	return time.Duration(n) * time.Microsecond
}

// pack writes a rule as the scripts read it.
func pack(r *guard.Rule) string {
	b := make([]byte, 0, 64)
	number := func(n int64) { b = append(strconv.AppendInt(b, n, 10), ' ') }
	number(int64(r.Limit))
	number(r.Window.Microseconds())
	number(int64(r.Burst))
	if r.Unlimited {
		number(1)
	} else {
		number(0)
	}
	number(int64(r.Penalty.After))
	number(r.Penalty.Block.Microseconds())
	b = append(strconv.AppendFloat(b, r.Penalty.Factor, 'g', -1, 64), ' ')
	number(r.Penalty.Max.Microseconds())
	return string(strconv.AppendInt(b, r.Penalty.History.Microseconds(), 10))
}

// unpack reads what pack wrote; what it cannot read is a zero rule.
func unpack(text string) guard.Rule {
	words := strings.Fields(text)
	if len(words) != 9 {
		return guard.Rule{}
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(words[i], 10, 64)
		return n
	}
	factor, _ := strconv.ParseFloat(words[6], 64)
	return guard.Rule{Limit: int(number(0)), Window: micros(number(1)), Burst: int(number(2)), Unlimited: number(3) == 1,
		Penalty: guard.Penalty{After: int(number(4)), Block: micros(number(5)), Factor: factor, Max: micros(number(7)),
			History: micros(number(8))}}
}
