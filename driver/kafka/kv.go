package kafka

import (
	"context"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/kafkakv"
	"github.com/ferrymq/ferry/internal/refusal"
)

// kvKey is the row of the meta topic that says how many partitions the named values have. They stay as many: a bucket is found by it.
const kvKey = "values"

// kvRow is that row.
type kvRow struct{ Partitions int }

// KV holds named values.
func (d *Driver) KV() driver.KV { return d.kv }

func (d *Driver) newKV() *kafkakv.KV {
	return kafkakv.New(kafkakv.Options{
		Client: d.client,
		Reader: func(more ...kgo.Opt) (*kgo.Client, error) {
			return kgo.NewClient(d.clientOptions(append(more, kgo.Rack(""))...)...) // a replica near by hears of a verdict later than the leader
		},
		Topic: d.kvTopic(), Prepare: d.makeKV, Place: partitionOf, Levels: d.caps, Unsure: unsure, Unreached: d.unreached,
		SnapshotEvery: d.o.snapshotEvery, Idle: d.o.kvIdle,
	})
}

// makeKV makes the topic of named values if it does not exist.
func (d *Driver) makeKV(ctx context.Context) (partitions int, err error) {
	var row kvRow
	if d.metaRow(kvKey, &row) {
		return row.Partitions, nil
	}
	if d.isClosed() {
		return 0, refusal.Closed()
	}
	release, err := d.single(ctx, kvKey)
	if err != nil {
		return 0, err
	}
	defer release()
	if err := d.meta.sync(ctx); err != nil {
		return 0, err
	}
	n := d.o.InternalPartitions
	err = d.makeRow(ctx, kvKey, kvRow{n}, func(ctx context.Context, _ time.Time) error {
		return d.createTopics(ctx, topicSpec{d.kvTopic(), n, commandLog()})
	})
	if err != nil {
		return 0, err
	}
	d.metaRow(kvKey, &row)
	return row.Partitions, nil
}

// commandLog are the settings of the topic of named values: nothing ends by itself, and what is trimmed makes room soon.
func commandLog() map[string]*string {
	return map[string]*string{"cleanup.policy": text("delete"), "retention.ms": text("-1"), "retention.bytes": text("-1"), "message.timestamp.type": text("LogAppendTime"),
		"segment.bytes": text("134217728"), "max.message.bytes": text(strconv.Itoa(maxMaxBody + 200<<10))} // a batch is as large as that of messages may be
}
