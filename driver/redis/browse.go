package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

const (
	browseAtATime = 128     // messages read in one go
	browseTries   = 1024    // sequence numbers for them, of which some are gone
	browseBytes   = 4 << 20 // of messages, beyond which no further one is read
	segmentSize   = 1024
	maxSegment    = maxSeq / segmentSize
	maxSeq        = 100_000_000_000_000 // numbers below are exact in scripts
)

// Browse returns a page of entries in one state: dead letters of all shards together in the order of dying; others one
// shard after the other, in the order of publishing, and what waits or is delayed in the order of being due.
func (d *Driver) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	q, err := q.Resolve(d.caps)
	if err != nil {
		return driver.Page{}, err
	}
	t, err := d.topics.Existing(ctx, q.Topic)
	if err != nil {
		return driver.Page{}, err
	}
	if q.State == driver.StateDead {
		return d.browseDead(ctx, t, q)
	}
	b := &browser{q: q}
	if err := b.resolve(); err != nil {
		return driver.Page{}, err
	}
	for b.shard < len(t.shards) {
		b.s = t.shards[b.shard]
		ended, err := b.look(ctx, t)
		if err != nil {
			return driver.Page{}, err
		}
		if !ended {
			b.page.Next = q.Continue(d.caps, strconv.Itoa(b.shard)+"."+b.at)
			return b.page, nil
		}
		b.shard, b.at, b.passed = b.shard+1, "", 0
	}
	return b.page, nil
}

// browser collects one page.
type browser struct {
	q     driver.Query
	shard int
	at    string // where to continue in the shard; what it means depends on the state
	s     *shard
	page  driver.Page

	passed int64 // members of a sorted set with the score of at that are known to be before it
}

// resolve finds where the page begins.
func (b *browser) resolve() error {
	if b.q.Cursor == "" {
		return nil
	}
	shard, at, ok := strings.Cut(b.q.Cursor, ".")
	n, err := strconv.Atoi(shard)
	if !ok || err != nil || n < 0 {
		return redisshell.ErrCursor(b.q.Cursor, err)
	}
	b.shard, b.at = n, at
	return nil
}

// check makes sure that topic and group exist.
func (b *browser) check(ctx context.Context, t *topic) error {
	fields, err := b.s.d.client.HMGet(ctx, b.s.keys[keyTopic], "epoch", "groups").Result()
	if err != nil {
		return redisconn.Classify(err)
	}
	epoch, ok := fields[0].(string)
	if !ok {
		return b.s.d.gone(t)
	}
	names, _ := fields[1].(string)
	g := b.s.groups()
	if g.epoch != epoch {
		g = b.s.learn(epoch, names)
	}
	if b.q.Group != "" && !slices.Contains(g.names, b.q.Group) {
		return t.noGroup(b.q.Group, g.names)
	}
	return nil
}

func (b *browser) groupKey(k int) string {
	return b.s.tag + "g:" + b.q.Group + ":" + groupKeyNames[k]
}

// look reads the shard until it ends or the page is full, and reports whether it ended.
func (b *browser) look(ctx context.Context, t *topic) (bool, error) {
	if b.q.State == driver.StateReady {
		return b.segments(ctx, t)
	}
	if err := b.check(ctx, t); err != nil {
		return false, err
	}
	switch b.q.State {
	case driver.StateDone:
		return true, nil // nothing is kept
	case driver.StateInflight:
		return b.inflight(ctx)
	case driver.StateWaiting:
		return b.sorted(ctx, b.groupKey(keyTimer), "W")
	case driver.StateDelayed:
		return b.sorted(ctx, b.s.keys[keyDelayed], "")
	case driver.StateHeld:
		return b.sorted(ctx, b.s.keys[keyHeld], "")
	}
	return b.sorted(ctx, b.s.keys[keyInvalid], "")
}

// room is how many more entries may be looked at now.
func (b *browser) room() int {
	return min(b.q.Limit-len(b.page.Entries), b.q.MaxScan-b.page.Scanned, browseAtATime)
}

// sorted goes through a sorted set, whose members are sequence numbers behind a prefix.
func (b *browser) sorted(ctx context.Context, key, prefix string) (bool, error) {
	for b.room() > 0 {
		found, ended, err := b.members(ctx, key, prefix)
		if err != nil || ended {
			return ended, err
		}
		seqs := make([]string, len(found))
		for i, p := range found {
			seqs[i] = p.seq
		}
		if err := b.show(ctx, seqs); err != nil {
			return false, err
		}
	}
	return false, nil
}

// place is a message in a sorted set. A listing that has come to it goes on at score and member.
type place struct{ seq, at string }

// members returns the next messages of a sorted set, as many as there is room for, and reports whether it has ended.
func (b *browser) members(ctx context.Context, key, prefix string) (found []place, ended bool, err error) {
	score, member, _ := strings.Cut(b.at, "_")
	from := "-inf"
	if score != "" {
		from = score
	}
	count := int64(b.room() + browseAtATime)
	zs, err := b.s.d.client.ZRangeByScoreWithScores(ctx, key,
		&goredis.ZRangeBy{Min: from, Max: "+inf", Offset: b.passed, Count: count}).Result()
	if err != nil {
		return nil, false, redisconn.Classify(err)
	}
	for _, z := range zs {
		m, _ := z.Member.(string)
		at := strconv.FormatFloat(z.Score, 'f', -1, 64)
		if len(found) >= b.room() {
			break
		}
		if at == score && m <= member {
			continue
		}
		b.at = at + "_" + m
		if seq, ok := strings.CutPrefix(m, prefix); ok {
			found = append(found, place{seq, b.at})
		}
	}
	switch next, _, _ := strings.Cut(b.at, "_"); {
	case b.at == score+"_"+member && int64(len(zs)) == count:
		b.passed += count
	case b.at == score+"_"+member, len(zs) == 0:
		return nil, true, nil
	case next != score:
		b.passed = 0
	}
	return found, false, nil
}

// show adds the entries that are in the wanted state.
func (b *browser) show(ctx context.Context, seqs []string) error {
	b.page.Scanned += len(seqs)
	if len(seqs) == 0 {
		return nil
	}
	if b.q.State == driver.StateInvalid {
		for _, seq := range seqs {
			e, ok, err := b.s.invalidEntry(ctx, seq)
			if err != nil {
				return err
			}
			if ok {
				b.page.Entries = append(b.page.Entries, e)
			}
		}
		return nil
	}
	v, err := b.s.load(ctx, seqs, []string{b.q.Group})
	if err != nil || v == nil {
		return err
	}
	b.add(v, seqs)
	return nil
}

// add adds the entries of a view that are in the wanted state.
func (b *browser) add(v *view, seqs []string) {
	for _, seq := range seqs {
		if e, ok := v.entry(seq, b.q.Group); ok && e.State == b.q.State {
			b.page.Entries = append(b.page.Entries, e)
		}
	}
}

// entry returns a message as a group sees it, or as the topic does.
func (v *view) entry(seq, group string) (driver.Entry, bool) {
	if e, ok := v.ofTopic(seq); ok || group == "" {
		return e, ok
	}
	i := slices.Index(v.g.names, group)
	if i < 0 {
		return driver.Entry{}, false
	}
	return v.ofGroup(seq, i)
}

// inflight goes through the leases, in the order of the sequence numbers.
func (b *browser) inflight(ctx context.Context) (bool, error) {
	leases, err := b.s.d.client.HVals(ctx, b.groupKey(keyLease)).Result()
	if err != nil {
		return false, redisconn.Classify(err)
	}
	after, _ := strconv.ParseUint(b.at, 10, 64)
	var all []uint64
	for seq := range holders(leases) {
		if n, err := strconv.ParseUint(seq, 10, 64); err == nil && n > after {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	for len(all) > 0 && b.room() > 0 {
		n := min(b.room(), len(all))
		if err := b.show(ctx, decimal(all[:n])); err != nil {
			return false, err
		}
		b.at = strconv.FormatUint(all[n-1], 10)
		all = all[n:]
	}
	return len(all) == 0, nil
}

func decimal(ns []uint64) []string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = strconv.FormatUint(n, 10)
	}
	return s
}

// segments goes through all messages of the topic, in the order of their sequence numbers.
func (b *browser) segments(ctx context.Context, t *topic) (bool, error) {
	for b.room() > 0 {
		step, err := b.step(ctx)
		if err != nil {
			return false, err
		}
		if step.view == nil {
			return false, b.s.d.gone(t)
		}
		if names := step.view.g.names; !slices.Contains(names, b.q.Group) {
			return false, t.noGroup(b.q.Group, names)
		}
		b.at = step.at
		b.page.Scanned += len(step.seqs)
		b.add(step.view, step.seqs)
		if step.ended {
			return true, nil
		}
	}
	return false, nil
}

// step is what lua/page.lua answers: messages behind those that were looked at, in one call.
type step struct {
	view  *view // nil when the topic is gone
	seqs  []string
	at    string
	ended bool
}

func (b *browser) step(ctx context.Context) (next step, err error) {
	after, _ := strconv.ParseUint(b.at, 10, 64)
	next.view, err = b.s.looking(func(q viewQuery) ([]string, redisconn.Reply, error) {
		reply, err := b.s.d.run(ctx, &b.s.d.scripts.page, append(q.keys, b.s.keys[keySegments]),
			after, b.room(), browseTries, browseBytes, maxSegment)
		next.at, next.ended, next.seqs = reply.Text(0), reply.Integer(1) == 1, reply.Texts(2)
		return next.seqs, reply.List(3), err
	}, []string{b.q.Group})
	return next, err
}
