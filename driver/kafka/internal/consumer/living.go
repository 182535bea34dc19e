package consumer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// A dead letter may be there while its message lives: whoever died between storing the one and ending the other leaves
// both. Then the letter stays as it is until the message is settled. To look for one message a group is read whole; for
// many letters only what says that one of them lives.

// Lives reports which of some dead letters of a group have a message that is not settled. What died a moment ago with
// another owner is not committed yet.
func (d *Groups) Lives(ctx context.Context, t *registry.TopicState, group string, letters []driver.Entry) ([]bool,
	error) {
	for tries := 0; ; tries++ {
		live, err := d.livesNow(ctx, t, group, letters)
		if err != nil || tries == 2 || !slices.Contains(live, true) {
			return live, err
		}
		if err := cluster.Pause(ctx, cluster.CommitEvery); err != nil {
			return nil, err
		}
	}
}

func (d *Groups) livesNow(ctx context.Context, t *registry.TopicState, group string, letters []driver.Entry) ([]bool,
	error) {
	ids, err := d.registry.PartitionsNow(ctx, t)
	if err != nil {
		return nil, err
	}
	live := make([]bool, len(letters))
	if own := d.memberIn(t.Name, group); own != nil {
		own.haveSome(letters, live)
		ids = own.without(ids)
	}
	if len(ids) == 0 {
		return live, nil
	}
	at, err := d.registry.Committed(ctx, t, group)
	if err != nil {
		return nil, err
	}
	keys := d.keysOf(t.Name, group)
	keys.mu.Lock()
	defer keys.mu.Unlock()
	if err := keys.readOn(ctx, d.cluster, d.cluster.RetryTopic(t.Name, group)); err != nil {
		return nil, err
	}
	done := map[int32]*offsets.Set{}
	for _, id := range ids {
		done[id] = offsets.Committed(at[id])
	}
	for i, e := range letters {
		p := done[e.Ref.Partition]
		undone := p != nil && e.Ref.Sub == 0 && !p.Has(int64(e.Ref.Pos)-1)
		live[i] = live[i] || undone || keys.hasOne(ids, e)
	}
	return live, nil
}

// haveSome notes which letters have a message that is unsettled in the partitions of this process.
func (m *member) haveSome(letters []driver.Entry, live []bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		for i, e := range letters {
			live[i] = live[i] || p.hasOne(e)
		}
	}
}

// hasOne reports whether the message of a dead letter is unsettled in an owned partition, fetched or not.
func (p *partition) hasOne(e driver.Entry) bool {
	if e.Ref.Sub == 0 && e.Ref.Partition == p.id && !p.done.Has(int64(e.Ref.Pos)-1) {
		return true
	}
	return slices.ContainsFunc(livingKeys(e), func(key string) bool {
		it := p.items.of(keyOf(key))
		return it != nil && it.Msg.ID == e.ID
	})
}

// livingKeys are the keys in a retry log under which the message of a dead letter may live: as it was, as what its
// replay made of it, or with another key.
func livingKeys(e driver.Entry) []string {
	keys := []string{fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds), fmt.Sprintf("r/%s/%d", e.ID, e.Dead.Rounds+1),
		fmt.Sprintf("k/%s/%s", e.ID, e.Ref)}
	if e.Ref.Sub == 0 {
		keys = append(keys, fmt.Sprint(mainPrefix, int64(e.Ref.Pos)-1))
	}
	return keys
}

// liveKeys are the keys of what is unfinished in a retry log that others own. It is read on from where the last look
// ended.
type liveKeys struct {
	mu   sync.Mutex
	next map[int32]int64
	live map[logKey]bool
}

// newLiveKeys knows nothing yet.
func newLiveKeys() *liveKeys { return &liveKeys{next: map[int32]int64{}, live: map[logKey]bool{}} }

type logKey struct {
	partition int32
	key       string
}

// readOn learns what was stored since the last look.
func (s *liveKeys) readOn(ctx context.Context, d *cluster.Cluster, topic string) error {
	ends, err := d.CommittedEnds(ctx, topic)
	if err != nil {
		return err
	}
	spans := map[int32][2]int64{}
	for id, end := range ends {
		if end < s.next[id] { // it was made anew
			s.next[id] = 0
			maps.DeleteFunc(s.live, func(k logKey, _ bool) bool { return k.partition == id })
		}
		if s.next[id] < end {
			spans[id] = [2]int64{s.next[id], end}
		}
	}
	if err := d.ReadSpans(ctx, topic, spans, s.note); err != nil {
		return err
	}
	for id, span := range spans {
		s.next[id] = span[1]
	}
	return nil
}

// note takes in a record of the retry log.
func (s *liveKeys) note(r *kgo.Record) {
	key := logKey{r.Partition, string(r.Key)}
	if strings.HasPrefix(key.key, commandPrefix) || key.key == epochKey || key.key == standInKey {
		return
	}
	x, _ := record.StateOf(r)
	if x.Late(r) {
		return
	}
	if r.Value == nil || x.Done {
		delete(s.live, key)
	} else {
		s.live[key] = true
	}
}

// hasOne reports whether the message of a dead letter is unfinished in one of some partitions.
func (s *liveKeys) hasOne(ids []int32, e driver.Entry) bool {
	for _, key := range livingKeys(e) {
		for _, id := range ids {
			if s.live[logKey{id, key}] {
				return true
			}
		}
	}
	return false
}
