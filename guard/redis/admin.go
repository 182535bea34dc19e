package redis

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/guard/store"
	"github.com/ferrymq/ferry/internal/redisconn"
)

const (
	auditBound = 1_000
	reportAge  = time.Hour
)

// Change implements store.Desk.
func (s *Store) Change(ctx context.Context, c guard.Change) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	names := []string{
		s.keys.account(c.Limit, c.Key), s.keys.waits(c.Limit, c.Key), s.keys.index(guard.KindBlocked),
		s.keys.index(guard.KindOverridden), s.keys.index(guard.KindWhitelisted), s.keys.audit(),
		s.keys.forced(), s.keys.rules(),
	}
	reply, err := s.run(ctx, scriptChange, names, string(c.Action), member(c.Limit, c.Key),
		c.For.Microseconds(), pack(&c.Rule),
		c.Actor, c.Reason, text, auditBound, c.Key, s.name(s.next()), store.RuleName(c.Limit, c.Group), store.MaxSharedRules)
	if err == nil && len(reply) > 0 {
		return store.ErrManyRules
	}
	return err
}

// Rules implements store.Desk. A rule is kept as the scripts read it, then a bar, and the change that set it as in the
// audit list.
func (s *Store) Rules(ctx context.Context) ([]guard.SharedRule, error) {
	kept, err := s.client.HGetAll(ctx, s.keys.rules()).Result()
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	out := make([]guard.SharedRule, 0, len(kept))
	for _, value := range kept {
		_, line, _ := strings.Cut(value, "|")
		c, err := readChange(line)
		if err != nil {
			return nil, err
		}
		out = append(out, store.SharedRuleOf(c))
	}
	store.SortRules(out)
	return out, nil
}

// Status implements store.Desk.
func (s *Store) Status(ctx context.Context, limit, key string) (guard.Status, error) {
	all, err := s.statuses(ctx, []string{member(limit, key)})
	if err != nil {
		return guard.Status{}, err
	}
	return all[0], nil
}

func (s *Store) statuses(ctx context.Context, members []string) ([]guard.Status, error) {
	var names []string
	out := make([]guard.Status, len(members))
	for i, m := range members {
		out[i].Limit, out[i].Key = splitMember(m)
		names = append(names, s.keys.account(out[i].Limit, out[i].Key), s.keys.window(out[i].Limit, out[i].Key))
	}
	reply, err := s.run(ctx, scriptStatus, names)
	if err != nil {
		return nil, err
	}
	const width = 11
	if len(reply) != 1+width*len(members) {
		return nil, errReply
	}
	for i := range out {
		readStatus(&out[i], reply[1+i*width:1+(i+1)*width])
	}
	return out, nil
}

func readStatus(s *guard.Status, fields []any) {
	text := func(i int) string {
		t, _ := fields[i].(string)
		return t
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(text(i))
		return n
	}
	s.Rule, s.Used, s.Violations, s.Level = unpack(text(0)), number(1), number(2), number(3)
	if text(4) == "1" {
		s.Block = &guard.Block{Until: instant(text(5))}
	}
	if text(6) != "" {
		s.Override = &guard.Override{Rule: unpack(text(6)), Until: instant(text(7))}
	}
	s.Whitelisted, s.Actor, s.Reason = text(8) == "1", text(9), text(10)
}

// instant reads a time in microseconds; zero is none.
func instant(text string) time.Time {
	n, _ := strconv.ParseInt(text, 10, 64)
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n)
}

// List implements store.Desk. The cursor is an offset: keys that come and go meanwhile may be missed or seen twice.
func (s *Store) List(ctx context.Context, q guard.Query) (guard.Page, error) {
	if q.Max <= 0 {
		q.Max = 100
	}
	q.Max = min(q.Max, 1000)
	offset, err := strconv.Atoi("0" + q.Cursor)
	if err != nil {
		return guard.Page{}, driver.NewError(driver.ErrInvalid, "the cursor is none of this store", "use Page.Next", nil)
	}
	var p guard.Page
	for len(p.Keys) < q.Max {
		reply, err := s.run(ctx, scriptList, []string{s.keys.index(q.Kind)}, offset, q.Max)
		if err != nil {
			return p, err
		}
		members, used := choose(reply, q, q.Max-len(p.Keys))
		if len(members) > 0 {
			found, err := s.statuses(ctx, members)
			if err != nil {
				return p, err
			}
			p.Keys = append(p.Keys, found...)
		}
		offset += used
		if used == len(reply) && len(reply) < q.Max {
			return p, nil
		}
	}
	p.Next = strconv.Itoa(offset)
	return p, nil
}

// choose takes the members of the wanted limit, and says how many it looked at.
func choose(reply []any, q guard.Query, most int) (members []string, used int) {
	for _, v := range reply {
		if len(members) == most {
			break
		}
		used++
		m, _ := v.(string)
		if limit, _ := splitMember(m); q.Limit == "" || q.Limit == limit {
			members = append(members, m)
		}
	}
	return members, used
}

// Audit implements store.Desk.
func (s *Store) Audit(ctx context.Context, max int) ([]guard.Change, error) {
	lines, err := s.client.LRange(ctx, s.keys.audit(), 0, int64(max)-1).Result()
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	out := make([]guard.Change, 0, len(lines))
	for _, line := range lines {
		c, err := readChange(line)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// readChange reads a line of the audit list: the time, the request, and the change.
func readChange(line string) (c guard.Change, err error) {
	at, rest, _ := strings.Cut(line, " ")
	_, text, _ := strings.Cut(rest, " ")
	if json.Unmarshal([]byte(text), &c) != nil {
		return c, errReply
	}
	c.At = instant(at)
	return c, nil
}

// Report implements store.Desk.
func (s *Store) Report(ctx context.Context, instance string, breakers []guard.BreakerStatus) ([]store.Forced, error) {
	text := ""
	if len(breakers) > 0 {
		b, err := json.Marshal(breakers)
		if err != nil {
			return nil, err
		}
		text = string(b)
	}
	reply, err := s.run(ctx, scriptReport, []string{s.keys.reports(), s.keys.reporters(), s.keys.forced()}, instance, text,
		reportAge.Microseconds())
	if err != nil {
		return nil, err
	}
	var out []store.Forced
	for i := 0; i+1 < len(reply); i += 2 {
		name, _ := reply[i].(string)
		state, _ := reply[i+1].(string)
		out = append(out, store.Forced{Name: name, State: guard.State(state)})
	}
	return out, nil
}

// Reports implements store.Desk.
func (s *Store) Reports(ctx context.Context) ([]guard.BreakerStatus, error) {
	all, err := s.client.HGetAll(ctx, s.keys.reports()).Result()
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	server, err := s.client.Time(ctx).Result()
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	var out []guard.BreakerStatus
	for instance, line := range all {
		seen, text, _ := strings.Cut(line, " ")
		var list []guard.BreakerStatus
		if json.Unmarshal([]byte(text), &list) != nil {
			return nil, errReply
		}
		at := instant(seen)
		if server.Sub(at) > reportAge {
			continue
		}
		for _, b := range list {
			b.Instance, b.Seen = instance, at
			out = append(out, b)
		}
	}
	forced, err := s.client.HGetAll(ctx, s.keys.forced()).Result()
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	for name, state := range forced {
		out = store.WithForced(out, store.Forced{Name: name, State: guard.State(state)})
	}
	store.SortBreakers(out)
	return out, nil
}
