package registry

import (
	"context"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// PartitionFor chooses a partition: by key, or in turn.
func (d *Registry) PartitionFor(t *TopicState, key string) int32 {
	if key != "" {
		return record.PartitionOf(key, t.Partitions)
	}
	return t.InTurn()
}

// InTurn is the next partition.
func (t *TopicState) InTurn() int32 {
	return int32(atomic.AddUint32(&t.spread, 1) % uint32(t.Partitions))
}

// Extent is where the partitions of a topic begin and end, whatever is kept on purpose.
func (d *Registry) Extent(ctx context.Context, t *TopicState) (starts, ends map[int32]int64, err error) {
	if starts, err = d.cluster.Offsets(ctx, d.cluster.Admin.ListStartOffsets, d.cluster.MainTopic(t.Name)); err != nil {
		return nil, nil, err
	}
	if ends, err = d.Position(ctx, t, EndPosition); err != nil {
		return nil, nil, err
	}
	for id, end := range ends {
		starts[id] = min(starts[id], end)
	}
	return starts, ends, nil
}

// DueNow is what was delayed or held in its topic.
func (d *Registry) DueNow(t *TopicState, msg *driver.Message) *kgo.Record {
	r := record.ToRecord(d.cluster.MainTopic(t.Name), d.PartitionFor(t, msg.Key), msg)
	r.Headers = append(r.Headers, record.State{Cause: driver.CauseReplay, Offset: -1}.Header())
	return r
}
