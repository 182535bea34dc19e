package consumer

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/driver/kafka/internal/retrylog"
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
		ids = own.haveSome(letters, live, ids)
	}
	if len(ids) == 0 {
		return live, nil
	}
	at, err := d.registry.Committed(ctx, t, group)
	if err != nil {
		return nil, err
	}
	keys := d.keysOf(t.Name, group)
	keys.Mu.Lock()
	defer keys.Mu.Unlock()
	if err := keys.ReadOn(ctx, d.cluster, d.cluster.RetryTopic(t.Name, group)); err != nil {
		return nil, err
	}
	done := map[int32]*offsets.Set{}
	for _, id := range ids {
		done[id] = offsets.Committed(at[id])
	}
	for i, e := range letters {
		p := done[e.Ref.Partition]
		undone := p != nil && e.Ref.Sub == 0 && !p.Has(int64(e.Ref.Pos)-1)
		live[i] = live[i] || undone || keys.HasOne(ids, e)
	}
	return live, nil
}

// haveSome notes which letters have a message that is unsettled in the partitions of this process, and returns the
// other partitions.
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

// hasOne reports whether the message of a dead letter is unsettled in an owned partition, fetched or not.
func (p *partition) hasOne(e driver.Entry) bool {
	if e.Ref.Sub == 0 && e.Ref.Partition == p.id && !p.done.Has(int64(e.Ref.Pos)-1) {
		return true
	}
	return slices.ContainsFunc(retrylog.LivingKeys(e), func(key string) bool {
		it := p.items.of(keyOf(key))
		return it != nil && it.state != gone && it.Msg.ID == e.ID
	})
}
