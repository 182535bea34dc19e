package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// deadRecord is the dead letter of an item. The key makes a repeat harmless.
func (m *member) deadRecord(it *item, last driver.Failure, instance string) *kgo.Record {
	if last.At.IsZero() {
		last.At = time.Now().UTC()
	}
	dl := &driver.DeadLetter{
		Message: it.msg, History: driver.AppendFailure(it.history, last), Attempts: it.attempts + 1, Deliveries: it.lost + 1, Rounds: it.rounds,
		Origin: driver.Origin{Topic: m.topic.name, Group: m.group, Ref: it.ref, Instance: instance},
	}
	if last.Reason == driver.ReasonExpired {
		dl.Attempts = it.attempts
	}
	dl.Bury(dl.History[len(dl.History)-1])
	return &kgo.Record{Topic: m.d.deadTopic(m.topic.name), Partition: partitionOf(deadName(m.group, it.msg.ID), m.d.o.InternalPartitions), Key: []byte(deadKey(m.group, it.msg.ID, it.rounds)),
		Value: envelope.AppendDeadLetter(nil, dl)}
}

// invalidRows follows the broken records of a topic from the first look on.
func (d *Driver) invalidRows(ctx context.Context, t *topicState) (*index, error) {
	return d.indexOf(ctx, &t.invalid, d.invalidTopic(t.name), func(key string) (list, name string) { return invalidList, key })
}

// invalidList is the only listing of broken records.
const invalidList = "invalid"

// changeInvalid stores what change makes of a broken record, for one of those who want to end it at the same time, and deletes it.
func (d *Driver) changeInvalid(ctx context.Context, t *topicState, ref driver.Ref, change making) error {
	x, err := d.invalidRows(ctx, t)
	if err != nil {
		return err
	}
	at, ok := x.find(ref.String())
	if !ok {
		return errNoMessage(driver.Target{Topic: t.name, Ref: ref})
	}
	return x.contend(ctx, int32(at.partition), ref.String(), at.offset, func(ctx context.Context) (made, ends []*kgo.Record, err error) {
		made, err = change(ctx)
		return made, []*kgo.Record{tombstone(x.topic, int32(at.partition), ref.String())}, err
	})
}

// making returns the records that a message becomes elsewhere.
type making func(context.Context) ([]*kgo.Record, error)

// unchanged makes nothing of what ends.
func unchanged(context.Context) ([]*kgo.Record, error) { return nil, nil }

// into makes one record.
func into(r *kgo.Record) making {
	return func(context.Context) ([]*kgo.Record, error) { return []*kgo.Record{r}, nil }
}

func span(n int) []int32 {
	ps := make([]int32, n)
	for i := range ps {
		ps[i] = int32(i)
	}
	return ps
}

// problemHeader says why a record is among the invalid.
const problemHeader = "ferry-problem"

// invalidRecord keeps a broken record whole.
func (d *Driver) invalidRecord(topic string, r *kgo.Record, problem error) *kgo.Record {
	headers := append([]kgo.RecordHeader{{Key: problemHeader, Value: []byte(problem.Error())},
		state{Offset: r.Offset, Ref: refOf(r)}.header()}, r.Headers...)
	return &kgo.Record{Topic: d.invalidTopic(topic), Key: []byte(refOf(r).String()), Value: append([]byte{}, r.Value...), Headers: headers}
}
