package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// changeInvalid stores what change makes of a broken record, for one of those who want to end it at the same time, and deletes it.
func (d *Driver) changeInvalid(ctx context.Context, t *registry.TopicState, ref driver.Ref, change compacted.Replacement) error {
	x, err := d.registry.InvalidRows(ctx, t)
	if err != nil {
		return err
	}
	at, ok := x.Find(ref.String())
	if !ok {
		return cluster.ErrNoMessage(driver.Target{Topic: t.Name, Ref: ref})
	}
	return x.Contend(ctx, int32(at.Partition), ref.String(), at.Offset, func(ctx context.Context) (made, ends []*kgo.Record, err error) {
		made, err = change(ctx)
		return made, []*kgo.Record{record.Tombstone(x.Topic, int32(at.Partition), ref.String())}, err
	})
}
