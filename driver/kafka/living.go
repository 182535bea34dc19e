package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// A dead letter may be there while its message lives: whoever died between storing the one and ending the other leaves both. Then the letter stays as it is
// until the message is settled. To look for one message a group is read whole; for many letters only what says that one of them lives.

// lives reports which of some dead letters of a group have a message that is not settled. What died a moment ago with another owner is not committed yet.
func (d *Driver) lives(ctx context.Context, t *topicState, group string, letters []driver.Entry) ([]bool, error) {
	for tries := 0; ; tries++ {
		live, err := d.livesNow(ctx, t, group, letters)
		if err != nil || tries == 2 || !slices.Contains(live, true) {
			return live, err
		}
		if err := pause(ctx, commitEvery); err != nil {
			return nil, err
		}
	}
}

func (d *Driver) livesNow(ctx context.Context, t *topicState, group string, letters []driver.Entry) ([]bool, error) {
	ids, err := d.partitionsNow(ctx, t)
	if err != nil {
		return nil, err
	}
	live := make([]bool, len(letters))
	if own := d.memberIn(t.name, group); own != nil {
		ids = own.haveSome(letters, live, ids)
	}
	if len(ids) == 0 {
		return live, nil
	}
	at, err := d.committed(ctx, t, group)
	if err != nil {
		return nil, err
	}
	side := t.sideKeys(group)
	side.mu.Lock()
	defer side.mu.Unlock()
	if err := side.readOn(ctx, d, d.sideTopic(t.name, group)); err != nil {
		return nil, err
	}
	done := map[int32]*doneSet{}
	for _, id := range ids {
		done[id] = newDoneSet(max(0, at[id].At))
		done[id].readMetadata(at[id].Metadata)
	}
	for i, e := range letters {
		p := done[e.Ref.Partition]
		undone := p != nil && e.Ref.Sub == 0 && !p.has(int64(e.Ref.Pos)-1)
		live[i] = live[i] || undone || side.hasOne(ids, e)
	}
	return live, nil
}

// haveSome notes which letters have a message that is unsettled in the partitions of this process, and returns the other partitions.
func (m *member) haveSome(letters []driver.Entry, live []bool, ids []int32) []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		for i, e := range letters {
			live[i] = live[i] || p.hasOne(e)
		}
	}
	return slices.DeleteFunc(ids, func(id int32) bool { return m.parts[id] != nil })
}

// memberIn is this process in a group; nil if it is no member.
func (d *Driver) memberIn(topic, group string) *member {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.members[d.groupID(topic, group)]
}

// livingKeys are the keys in a side log under which the message of a dead letter may live: as it was, as what its replay made of it, or with another key.
func livingKeys(e driver.Entry) []string {
	keys := []string{fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds), fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds+1), fmt.Sprintf("k/%s/%s", e.ID, e.Ref)}
	if e.Ref.Sub == 0 {
		keys = append(keys, fmt.Sprint(mainPrefix, int64(e.Ref.Pos)-1))
	}
	return keys
}

// hasOne reports whether the message of a dead letter is unsettled in an owned partition, fetched or not.
func (p *partition) hasOne(e driver.Entry) bool {
	if e.Ref.Sub == 0 && e.Ref.Partition == p.id && !p.done.has(int64(e.Ref.Pos)-1) {
		return true
	}
	return slices.ContainsFunc(livingKeys(e), func(key string) bool {
		it := p.items.of(keyOf(key))
		return it != nil && it.state != gone && it.msg.ID == e.ID
	})
}

// sideKeys are the keys of what is unfinished in a side log that others own. It is read on from where the last look ended.
type sideKeys struct {
	mu   sync.Mutex
	next map[int32]int64
	live map[sideKey]bool
}

type sideKey struct {
	partition int32
	key       string
}

// sideKeys returns what is known of the side log of a group.
func (t *topicState) sideKeys(group string) *sideKeys {
	t.sidesMu.Lock()
	defer t.sidesMu.Unlock()
	if t.sides[group] == nil {
		if t.sides == nil {
			t.sides = map[string]*sideKeys{}
		}
		t.sides[group] = &sideKeys{next: map[int32]int64{}, live: map[sideKey]bool{}}
	}
	return t.sides[group]
}

// forgetSide is told that a group is deleted.
func (t *topicState) forgetSide(group string) {
	t.sidesMu.Lock()
	defer t.sidesMu.Unlock()
	delete(t.sides, group)
}

// readOn learns what was stored since the last look.
func (s *sideKeys) readOn(ctx context.Context, d *Driver, topic string) error {
	ends, err := d.admin.ListCommittedOffsets(ctx, topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return d.unreached("reading offsets", err)
	}
	spans := map[int32][2]int64{}
	for id, end := range ends[topic] {
		if end.Offset < s.next[id] { // it was made anew
			s.next[id] = 0
			maps.DeleteFunc(s.live, func(k sideKey, _ bool) bool { return k.partition == id })
		}
		if s.next[id] < end.Offset {
			spans[id] = [2]int64{s.next[id], end.Offset}
		}
	}
	if err := d.readSpans(ctx, topic, spans, s.note); err != nil {
		return err
	}
	for id, span := range spans {
		s.next[id] = span[1]
	}
	return nil
}

// note takes in a record of the side log.
func (s *sideKeys) note(r *kgo.Record) {
	key := sideKey{r.Partition, string(r.Key)}
	if strings.HasPrefix(key.key, commandPrefix) || key.key == epochKey {
		return
	}
	x, _ := stateOf(r)
	if x.late(r) {
		return
	}
	if r.Value == nil || x.Done {
		delete(s.live, key)
	} else {
		s.live[key] = true
	}
}

// hasOne reports whether the message of a dead letter is unfinished in one of some partitions.
func (s *sideKeys) hasOne(ids []int32, e driver.Entry) bool {
	for _, key := range livingKeys(e) {
		for _, id := range ids {
			if s.live[sideKey{id, key}] {
				return true
			}
		}
	}
	return false
}
