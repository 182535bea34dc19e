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
	name := d.cluster.MainTopic(t.Name)
	found, err := d.cluster.Admin.ListStartOffsets(ctx, name)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return nil, nil, d.cluster.Unreached("reading offsets", err)
	}
	if ends, err = d.Position(ctx, t, EndPosition); err != nil {
		return nil, nil, err
	}
	starts = map[int32]int64{}
	for id := range ends {
		start, _ := found.Lookup(name, id)
		starts[id] = min(start.Offset, ends[id])
	}
	return starts, ends, nil
}

// DueNow is what was delayed or held in its topic.
func (d *Registry) DueNow(t *TopicState, msg *driver.Message) *kgo.Record {
	r := record.ToRecord(d.cluster.MainTopic(t.Name), d.PartitionFor(t, msg.Key), msg)
	r.Headers = append(r.Headers, record.State{Cause: driver.CauseReplay, Offset: -1}.Header())
	return r
}
