package registry

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// InvalidRows follows the broken records of a topic from the first look on.
func (d *Registry) InvalidRows(ctx context.Context, t *TopicState) (*compacted.Index, error) {
	return d.tables.IndexOf(ctx, &t.Invalid, d.cluster.InvalidTopic(t.Name),
		func(key string) (list, name string) { return InvalidList, key })
}

// InvalidList is the only listing of broken records.
const InvalidList = "invalid"

// InvalidRecord keeps a broken record whole.
func (d *Registry) InvalidRecord(topic string, r *kgo.Record, problem error) *kgo.Record {
	headers := append([]kgo.RecordHeader{{Key: record.ProblemHeader, Value: []byte(problem.Error())},
		record.State{Offset: r.Offset, Ref: record.RefOf(r)}.Header()}, r.Headers...)
	return &kgo.Record{Topic: d.cluster.InvalidTopic(topic), Key: []byte(record.RefOf(r).String()),
		Value: append([]byte{}, r.Value...), Headers: headers}
}

// DeadLetters follows the dead letters of a topic from the first look on.
func (d *Registry) DeadLetters(ctx context.Context, t *TopicState) (*compacted.Index, error) {
	return d.tables.IndexOf(ctx, &t.Dead, d.cluster.DeadTopic(t.Name), record.DeadList)
}

// ReadDead turns records of dead letters of a topic into entries.
func ReadDead(t *TopicState) func(*kgo.Record) (driver.Entry, bool) {
	return func(r *kgo.Record) (driver.Entry, bool) { return record.DeadEntry(t.Name, r) }
}
