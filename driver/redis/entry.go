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
	"github.com/ferrymq/ferry/internal/redisshell"
)

// view is everything that a shard knows of some messages: read by one script (lua/viewing.lua), then looked at.
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

// load reads what there is about messages, by their sequence numbers, as some groups see them (nil: all). It returns
// nil when the topic is gone.
func (s *shard) load(ctx context.Context, seqs []string, only []string) (*view, error) {
	args := make([]any, len(seqs))
	for i, seq := range seqs {
		args[i] = seq
	}
	return s.looking(func(q viewQuery) ([]string, redisconn.Reply, error) {
		reply, err := s.d.run(ctx, &s.d.scripts.view, q.keys, args...)
		return seqs, reply, err
	}, only)
}

// looking makes a view of what a script answers, which runs again when the groups have changed.
func (s *shard) looking(run func(viewQuery) (seqs []string, reply redisconn.Reply, err error),
	only []string) (*view, error) {
	for range staleTries {
		q := s.viewQuery(only)
		seqs, reply, err := run(q)
		if err != nil {
			return nil, err
		}
		epoch, names := reply.List(0).Text(0), reply.List(0).Text(1)
		if epoch == "" {
			return nil, nil
		}
		if epoch == q.g.epoch {
			return q.view(s, seqs, reply), nil
		}
		s.learn(epoch, names)
	}
	return nil, driver.NewError(driver.ErrNotApplied, "the groups of the topic keep changing", "try again", nil)
}

// viewQuery is what lua/viewing.lua is asked.
type viewQuery struct {
	g      *groups
	keys   []string
	groups []int // of g, in the order of the keys
}

func (s *shard) viewQuery(only []string) viewQuery {
	q := viewQuery{g: s.groups()}
	for _, k := range []int{keyTopic, keyBodies, keyLive, keyPending, keyDelayed, keyExpires, keyIDs} {
		q.keys = append(q.keys, s.keys[k])
	}
	for i, name := range q.g.names {
		if only != nil && !slices.Contains(only, name) {
			continue
		}
		of := q.g.keys[topicKeys+i*groupKeys:]
		q.groups = append(q.groups, i)
		q.keys = append(q.keys, of[keyGroup], of[keyState], of[keyRecord], of[keyHistory], of[keyEdited], of[keyLease])
	}
	return q
}

// view reads the answer.
func (q viewQuery) view(s *shard, seqs []string, reply redisconn.Reply) *view {
	v := &view{s: s, g: q.g, solo: reply.List(0).Text(2), bodies: strung(seqs, reply.List(1)),
		live:    strung(seqs, reply.List(2)),
		pending: strung(seqs, reply.List(3)), due: scored(seqs, reply.List(4)), expires: scored(seqs, reply.List(5)),
		published: map[string]time.Time{}, groups: make([]groupView, len(q.g.names))}
	for seq, indexed := range strung(seqs, reply.List(6)) {
		if it, ok := parseItem(indexed); ok && it.seq == seq {
			v.published[seq] = it.published
		}
	}
	for n, i := range q.groups {
		of := reply.List(7 + n)
		v.groups[i] = groupView{letter: of.Text(0), states: strung(seqs, of.List(1)), records: strung(seqs, of.List(2)),
			histories: strung(seqs, of.List(3)), edited: strung(seqs, of.List(4)), holders: holders(of.Texts(5))}
	}
	return v
}

// scored is strung of numbers.
func scored(seqs []string, values []any) map[string]float64 {
	m := map[string]float64{}
	for seq, text := range strung(seqs, values) {
		m[seq], _ = strconv.ParseFloat(text, 64)
	}
	return m
}

// strung turns values, of which some may be missing, into a map of what exists.
func strung(seqs []string, values []any) map[string]string {
	m := map[string]string{}
	for i, x := range values {
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
		e.State, e.Dead = driver.StateDead, deadLetter(&e, st, g.records[seq])
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
func deadLetter(e *driver.Entry, st state, record string) *driver.DeadLetter {
	lines := strings.SplitN(record, "\n", 3)
	lines = append(lines, "", "")
	ms, _ := strconv.ParseInt(lines[0], 10, 64)
	return redisshell.DeadLetter(e, time.UnixMilli(ms), lines[1], lines[2], st.failed, st.lost, st.rounds)
}
