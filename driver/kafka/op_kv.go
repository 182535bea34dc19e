package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/internal/kafkakv"
	"github.com/ferrymq/ferry/internal/refusal"
)

// kvKey is the row of the meta topic that says how many partitions the named values have. They stay as many: a bucket
// is found by it.
const kvKey = "values"

// kvRow is that row.
type kvRow struct{ Partitions int }

// KV holds named values.
func (d *Driver) KV() driver.KV { return d.kv }

func (d *Driver) newKV(o Options) *kafkakv.KV {
	return kafkakv.New(kafkakv.Options{
		Client: d.cluster.Client,
		Reader: func(more ...kgo.Opt) (*kgo.Client, error) {
			// a replica near by hears of a verdict later than the leader
			return kgo.NewClient(d.cluster.ClientOptions(append(more, kgo.Rack(""))...)...)
		},
		Topic: d.cluster.KVTopic(), Prepare: d.makeKV, Place: record.PartitionOf, Levels: d.caps, Unsure: cluster.Unsure,
		Unreached:     d.cluster.Unreached,
		SnapshotEvery: o.snapshotEvery, Idle: o.kvIdle,
	})
}

// makeKV makes the topic of named values if it does not exist.
func (d *Driver) makeKV(ctx context.Context) (partitions int, err error) {
	var row kvRow
	if d.registry.Row(kvKey, &row) {
		return row.Partitions, nil
	}
	if d.cluster.IsClosed() {
		return 0, refusal.Closed()
	}
	n := d.cluster.Settings.InternalPartitions
	err = d.registry.MakeRow(ctx, kvKey, kvRow{n}, func(ctx context.Context, _ time.Time) error {
		return d.cluster.CreateTopics(ctx, cluster.TopicSpec{Name: d.cluster.KVTopic(), Partitions: n,
			MaxBody: cluster.MaxMaxBody,                               // a batch is as large as that of messages may be
			More:    map[string]string{"segment.bytes": "134217728"}}) // what is trimmed makes room soon
	})
	if err != nil {
		return 0, err
	}
	d.registry.Row(kvKey, &row)
	return row.Partitions, nil
}
