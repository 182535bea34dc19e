package registry

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// DeadLetters follows the dead letters of a topic from the first look on.
func (d *Registry) DeadLetters(ctx context.Context, t *TopicState) (*compacted.Index, error) {
	return d.tables.IndexOf(ctx, &t.Dead, d.cluster.DeadTopic(t.Name), record.DeadList)
}

// ReadDead turns records of dead letters of a topic into entries.
func ReadDead(t *TopicState) func(*kgo.Record) (driver.Entry, bool) {
	return func(r *kgo.Record) (driver.Entry, bool) { return record.DeadEntry(t.Name, r) }
}
