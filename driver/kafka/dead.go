package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

func deadKey(group, id string) string { return group + "/" + id }

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
	key := deadKey(m.group, it.msg.ID)
	return &kgo.Record{Topic: m.d.deadTopic(m.topic.name), Partition: partitionOf(key, m.d.o.InternalPartitions), Key: []byte(key),
		Value: envelope.AppendDeadLetter(nil, dl)}
}

// invalidTable follows the broken records of a topic from the first look on.
func (d *Driver) invalidTable(ctx context.Context, t *topicState) (*table, error) {
	return d.lookAt(ctx, &t.invalid, d.invalidTopic(t.name))
}

func (d *Driver) lookAt(ctx context.Context, at **table, name string) (*table, error) {
	release, err := d.single(ctx, "table/"+name)
	if err != nil {
		return nil, err
	}
	defer release()
	if *at == nil {
		n, err := d.partitionsOf(ctx, name)
		if err != nil {
			return nil, err
		}
		*at = d.follow(name, span(n), nil)
	}
	return *at, (*at).sync(ctx)
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

// StoreRaw puts bytes that cannot be decoded into a topic, for tests of what happens then.
func (d *Driver) StoreRaw(ctx context.Context, topic string, raw []byte) error {
	t, err := d.ensurePublished(ctx, topic)
	if err != nil {
		return err
	}
	return d.produce(ctx, &kgo.Record{Topic: d.mainTopic(topic), Partition: d.place(t, ""), Value: append([]byte{}, raw...),
		Headers: []kgo.RecordHeader{{Key: "ferry-v", Value: []byte("0")}}})
}
