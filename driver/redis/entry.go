package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
	goredis "github.com/redis/go-redis/v9"
)

// view is everything that a shard knows of some messages: read in one transaction, then looked at.
type view struct {
	s         *shard
	g         *groups
	solo      string
	bodies    map[string]string
	live      map[string]string
	pending   map[string]string
	due       map[string]float64
	expires   map[string]float64
	groups    []groupView
	published map[string]time.Time
}

// groupView is what one group knows of them.
type groupView struct {
	letter    string
	states    map[string]string
	records   map[string]string
	histories map[string]string
	edited    map[string]string
	holders   map[string]string // sequence number to instance, of all in flight
}

// load reads what there is about messages, by their sequence numbers, as some groups see them (nil: all).
func (s *shard) load(ctx context.Context, seqs []string, only []string) (*view, error) {
	for range staleTries {
		g := s.groups()
		v := &view{s: s, g: g}
		q := &viewQuery{}
		_, err := s.d.client.TxPipelined(ctx, func(p goredis.Pipeliner) error { q.ask(ctx, p, s, g, seqs, only); return nil })
		if err != nil && !isNil(err) {
			return nil, redisconn.Classify(err)
		}
		topic := q.topic.Val()
		if topic[0] == nil {
			return nil, nil
		}
		if epoch, _ := topic[0].(string); epoch != g.epoch {
			names, _ := topic[1].(string)
			s.learn(epoch, names)
			continue
		}
		v.solo, _ = topic[2].(string)
		q.read(v, seqs)
		return v, v.publishTimes(ctx)
	}
	return nil, driver.NewError(driver.ErrNotApplied, "the groups of the topic keep changing", "try again", nil)
}

// viewQuery are the answers that make up a view.
type viewQuery struct {
	topic, bodies, live, pending *goredis.SliceCmd
	due, expires                 []*goredis.FloatCmd
	groups                       []groupQuery
}

type groupQuery struct {
	letter                             *goredis.StringCmd
	states, records, histories, edited *goredis.SliceCmd
	leases                             *goredis.StringSliceCmd
}

func (q *viewQuery) ask(ctx context.Context, p goredis.Pipeliner, s *shard, g *groups, seqs, only []string) {
	q.topic = p.HMGet(ctx, s.keys[keyTopic], "epoch", "groups", "solo")
	q.bodies, q.live, q.pending = p.HMGet(ctx, s.keys[keyBodies], seqs...), p.HMGet(ctx, s.keys[keyLive], seqs...), p.HMGet(ctx, s.keys[keyPending], seqs...)
	for _, seq := range seqs {
		q.due = append(q.due, p.ZScore(ctx, s.keys[keyDelayed], seq))
		q.expires = append(q.expires, p.ZScore(ctx, s.keys[keyExpires], seq))
	}
	q.groups = make([]groupQuery, len(g.names))
	for i, name := range g.names {
		if only != nil && !slices.Contains(only, name) {
			continue
		}
		of := g.keys[topicKeys+i*groupKeys:]
		q.groups[i] = groupQuery{letter: p.HGet(ctx, of[keyGroup], "i"), states: p.HMGet(ctx, of[keyState], seqs...),
			records: p.HMGet(ctx, of[keyRecord], seqs...), histories: p.HMGet(ctx, of[keyHistory], seqs...),
			edited: p.HMGet(ctx, of[keyEdited], seqs...), leases: p.HVals(ctx, of[keyLease])}
	}
}

func (q *viewQuery) read(v *view, seqs []string) {
	v.bodies, v.live, v.pending = strung(seqs, q.bodies), strung(seqs, q.live), strung(seqs, q.pending)
	v.due, v.expires = map[string]float64{}, map[string]float64{}
	for i, seq := range seqs {
		if q.due[i].Err() == nil {
			v.due[seq] = q.due[i].Val()
		}
		if q.expires[i].Err() == nil {
			v.expires[seq] = q.expires[i].Val()
		}
	}
	v.groups = make([]groupView, len(q.groups))
	for i, gq := range q.groups {
		if gq.letter == nil {
			continue
		}
		v.groups[i] = groupView{letter: gq.letter.Val(), states: strung(seqs, gq.states), records: strung(seqs, gq.records),
			histories: strung(seqs, gq.histories), edited: strung(seqs, gq.edited), holders: holders(gq.leases.Val())}
	}
}

// strung turns an answer to HMGET into a map of what exists.
func strung(seqs []string, c *goredis.SliceCmd) map[string]string {
	m := map[string]string{}
	for i, x := range c.Val() {
		if text, ok := x.(string); ok {
			m[seqs[i]] = text
		}
	}
	return m
}

// holders returns who has what in flight.
func holders(leases []string) map[string]string {
	m := map[string]string{}
	for _, record := range leases {
		lines := strings.Split(record, "\n")
		for _, line := range lines[1:] {
			if it, ok := parseItem(line); ok {
				m[it.seq] = lines[0]
			}
		}
	}
	return m
}

// publishTimes asks the index when messages were published.
func (v *view) publishTimes(ctx context.Context) error {
	v.published = map[string]time.Time{}
	var ids, seqs []string
	for seq, body := range v.bodies {
		if m, err := envelope.Decode([]byte(body)); err == nil {
			ids, seqs = append(ids, indexID(m.ID)), append(seqs, seq)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	list, err := v.s.d.client.HMGet(ctx, v.s.keys[keyIDs], ids...).Result()
	if err != nil {
		return redisconn.Classify(err)
	}
	for i, x := range list {
		text, _ := x.(string)
		if it, ok := parseItem(text); ok && it.seq == seqs[i] {
			v.published[seqs[i]] = it.published
		}
	}
	return nil
}

// message decodes the content of a message. What cannot be decoded is shown as it is.
func (v *view) message(seq, body string) *driver.Message {
	m, err := envelope.Decode([]byte(body))
	if err != nil {
		return &driver.Message{Topic: v.s.topic, Body: []byte(body)}
	}
	m.Topic, m.PublishedAt = v.s.topic, v.published[seq]
	return m
}

func (v *view) ref(seq string) driver.Ref {
	n, _ := strconv.ParseUint(seq, 10, 64)
	return v.s.ref(n)
}

func wall(ms float64) time.Time { return time.UnixMilli(int64(ms)) }

// ofTopic returns the entry of a message that belongs to the topic, if it does.
func (v *view) ofTopic(seq string) (driver.Entry, bool) {
	if _, ok := v.pending[seq]; !ok {
		return driver.Entry{}, false
	}
	e := driver.Entry{Message: v.message(seq, v.bodies[seq]), Ref: v.ref(seq), State: driver.StateHeld}
	if due, ok := v.due[seq]; ok {
		e.State, e.DueAt = driver.StateDelayed, wall(due)
	}
	if at, ok := v.expires[seq]; ok {
		e.ExpiresAt = wall(at)
	}
	return e, true
}

// ofGroup returns the entry of a message as a group sees it, if it has it.
func (v *view) ofGroup(seq string, i int) (driver.Entry, bool) {
	g := &v.groups[i]
	body, ok := v.bodies[seq]
	if !ok || g.letter == "" {
		return driver.Entry{}, false
	}
	st, _ := parseState(g.states[seq])
	live, ok := v.live[seq]
	if !ok {
		live = v.solo
	}
	if st.letter != 'D' && !strings.Contains(live, g.letter) {
		return driver.Entry{}, false
	}
	if edited, ok := g.edited[seq]; ok {
		body = edited
	}
	e := driver.Entry{Message: v.message(seq, body), Ref: v.ref(seq), Group: v.g.names[i], State: driver.StateReady,
		Attempt: st.failed + 1, Deliveries: st.lost + 1, History: historyOf(g.histories[seq])}
	if at, ok := v.expires[seq]; ok {
		e.ExpiresAt = wall(at)
	}
	holder, flying := g.holders[seq]
	switch {
	case st.letter == 'D':
		e.State, e.Dead = driver.StateDead, v.deadLetter(&e, st, g.records[seq])
	case flying:
		e.State, e.Instance = driver.StateInflight, holder
	case st.letter == 'W' || st.letter == 'T':
		e.State, e.DueAt = driver.StateWaiting, st.till
	}
	return e, true
}

// historyOf reads failures as lua/settle.lua keeps them: time, attempt and length on a line, then the failure.
func historyOf(s string) []driver.Failure {
	var all []driver.Failure
	for s != "" {
		head, rest, _ := strings.Cut(s, "\n")
		var ms int64
		var attempt, length int
		if n, _ := fmt.Sscanf(head, "%d %d %d", &ms, &attempt, &length); n != 3 || length < 0 || length > len(rest) {
			return all
		}
		fs, err := envelope.DecodeHistory([]byte(rest[:length]))
		if err == nil && len(fs) == 1 {
			fs[0].At, fs[0].Attempt = time.UnixMilli(ms), attempt
			all = append(all, fs[0])
		}
		s = rest[length:]
	}
	return all
}

// deadLetter puts together the record of a dead letter.
func (v *view) deadLetter(e *driver.Entry, st state, record string) *driver.DeadLetter {
	lines := strings.SplitN(record, "\n", 3)
	lines = append(lines, "", "")
	ms, _ := strconv.ParseInt(lines[0], 10, 64)
	last := driver.Failure{At: time.UnixMilli(ms)}
	if fs, err := envelope.DecodeHistory([]byte(lines[2])); err == nil && len(fs) == 1 {
		last.Reason, last.Error, last.Stack = fs[0].Reason, fs[0].Error, fs[0].Stack
	} else if lines[1] == "" {
		last.Reason, last.Error = driver.ReasonExpired, "expired before it was handled"
	}
	dl := &driver.DeadLetter{Message: e.Message.Clone(), History: slices.Clone(e.History), Attempts: st.failed, Deliveries: st.lost + 1, Rounds: st.rounds,
		Origin: driver.Origin{Topic: v.s.topic, Group: e.Group, Ref: e.Ref, Instance: lines[1]}}
	dl.Bury(last)
	return dl
}
