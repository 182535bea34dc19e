package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// Processes that start together make the same topics and groups. One of them does, and the others wait for the row that says so: the position of a group
// that is set a second time would pass over what was published since the first, and brokers refuse it once somebody consumes.

// makeTopic makes the Kafka topics of a topic, and its row.
func (d *Driver) makeTopic(ctx context.Context, topic string, row topicRow) error {
	n := row.Config.Partitions
	if n <= 0 {
		n = d.o.Partitions
	}
	return d.makeRow(ctx, topicKey(topic), row, func(ctx context.Context, _ time.Time) error {
		return d.createTopics(ctx, topicSpec{d.mainTopic(topic), n, d.logged()},
			topicSpec{d.deadTopic(topic), d.o.InternalPartitions, compacted()},
			topicSpec{d.invalidTopic(topic), 1, compacted()})
	})
}

// makeGroup makes a group that begins at a position, and its row.
func (d *Driver) makeGroup(ctx context.Context, t *topicState, group string, row groupRow, start driver.Position) error {
	return d.makeRow(ctx, groupKey(t.name, group), row, func(ctx context.Context, by time.Time) error {
		if err := d.createTopics(ctx, topicSpec{d.sideTopic(t.name, group), t.partitions, compacted()}); err != nil {
			return err
		}
		offsets, err := d.position(ctx, t, start)
		if err != nil {
			return err
		}
		if time.Now().After(by) { // somebody else may have made it by now
			return errTooLate()
		}
		return d.commitIdle(ctx, t, group, offsets, nil)
	})
}

// makeRow stores a row of the registry that is not there, when what it announces is prepared. It returns when the row is there, whoever made it.
func (d *Driver) makeRow(ctx context.Context, key string, row any, prepare func(ctx context.Context, by time.Time) error) error {
	for first := time.Now(); ; {
		if d.meta.get(key) != nil {
			return nil
		}
		began := time.Now()
		err := d.meta.contend(ctx, 0, "make/"+key, -1, func(ctx context.Context) (_, ends []*kgo.Record, err error) {
			if d.meta.get(key) != nil { // all that was stored before our claim is known
				return nil, nil, nil
			}
			value, _ := json.Marshal(row) // plain data: never fails
			return nil, []*kgo.Record{{Topic: d.metaTopic(), Key: []byte(key), Value: value}}, prepare(ctx, began.Add(2*transactFor))
		})
		consumed := isKafka(err, kerr.UnknownMemberID) && time.Since(first) < d.o.Session // by a version that makes no claims: its row follows
		if !consumed && !errors.Is(err, errContested) {
			return err
		}
		if err := pause(ctx, fetchWait/5); err != nil {
			return driver.NewError(driver.ErrNotApplied, "somebody else is making "+key+", and it is not there yet", "try again", err)
		}
	}
}
