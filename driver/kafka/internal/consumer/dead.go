package consumer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/internal/envelope"
)

// deadRecord is the dead letter of an item. The key makes a repeat harmless.
func (m *member) deadRecord(it *Item, last driver.Failure, instance string) *kgo.Record {
	if last.At.IsZero() {
		last.At = time.Now().UTC()
	}
	dl := &driver.DeadLetter{
		Message: it.Msg, History: driver.AppendFailure(it.history, last), Attempts: it.attempts + 1, Deliveries: it.lost + 1, Rounds: it.rounds,
		Origin: driver.Origin{Topic: m.topic.Name, Group: m.group, Ref: it.Ref, Instance: instance},
	}
	if last.Reason == driver.ReasonExpired {
		dl.Attempts = it.attempts
	}
	dl.Bury(dl.History[len(dl.History)-1])
	return &kgo.Record{Topic: m.d.cluster.DeadTopic(m.topic.Name), Partition: record.PartitionOf(record.DeadName(m.group, it.Msg.ID), m.d.cluster.Settings.InternalPartitions), Key: []byte(record.DeadKey(m.group, it.Msg.ID, it.rounds)),
		Value: envelope.AppendDeadLetter(nil, dl)}
}
