package registry

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/compacted"
)

// Processes that start together make the same topics and groups. One of them does, and the others wait for the row that
// says so: the position of a group that is set a second time would pass over what was published since the first, and
// brokers refuse it once somebody consumes.

// makeTopic makes the Kafka topics of a topic, and its row.
func (d *Registry) makeTopic(ctx context.Context, topic string, row TopicRow) error {
	n := row.Config.Partitions
	if n <= 0 {
		n = d.cluster.Settings.Partitions
	}
	row.Born = rand.Text()
	return d.MakeRow(ctx, TopicKey(topic), row, func(ctx context.Context, _ time.Time) error {
		return d.cluster.CreateTopics(ctx, cluster.TopicSpec{Name: d.cluster.MainTopic(topic), Partitions: n,
			MaxBody: d.cluster.Settings.MaxBody},
			cluster.TopicSpec{Name: d.cluster.DeadTopic(topic), Partitions: d.cluster.Settings.InternalPartitions},
			cluster.TopicSpec{Name: d.cluster.InvalidTopic(topic), Partitions: 1})
	})
}

// makeGroup makes a group that begins at a position, and its row.
func (d *Registry) makeGroup(ctx context.Context, t *TopicState, group string, row GroupRow,
	start driver.Position) error {
	return d.MakeRow(ctx, GroupKey(t.Name, group), row, func(ctx context.Context, by time.Time) error {
		if err := d.cluster.CreateTopics(ctx, cluster.TopicSpec{Name: d.cluster.RetryTopic(t.Name, group),
			Partitions: t.Partitions}); err != nil {
			return err
		}
		offsets, err := d.Position(ctx, t, start)
		if err != nil {
			return err
		}
		if time.Now().After(by) { // somebody else may have made it by now
			return cluster.ErrTooLate()
		}
		return d.CommitIdle(ctx, t, group, offsets, nil)
	})
}

// MakeRow stores a row of the registry that is not there, when what it announces is prepared. It returns when the row
// is there, whoever made it.
func (d *Registry) MakeRow(ctx context.Context, key string, row any,
	prepare func(ctx context.Context, by time.Time) error) error {
	release, err := d.cluster.Single(ctx, "make/"+key)
	if err != nil {
		return err
	}
	defer release()
	for first := time.Now(); ; {
		if d.Meta.Get(key) != nil {
			return nil
		}
		began := time.Now()
		change := func(ctx context.Context) ([]*kgo.Record, error) {
			if d.Meta.Get(key) != nil { // all that was stored before our lock is known
				return nil, nil
			}
			value, _ := json.Marshal(row) // plain data: never fails
			return []*kgo.Record{{Topic: d.cluster.MetaTopic(), Key: []byte(key), Value: value}},
				prepare(ctx, began.Add(2*cluster.TransactFor))
		}
		err := d.Meta.Contend(ctx, compacted.Contender{Key: "make/" + key, Row: -1, Change: change})
		// by a version that takes no locks: its row follows
		consumed := cluster.IsKafka(err, kerr.UnknownMemberID) && time.Since(first) < d.cluster.Settings.Session
		if !consumed && !errors.Is(err, compacted.ErrContested) {
			return err
		}
		if err := cluster.Pause(ctx, cluster.FetchWait/5); err != nil {
			return driver.NewError(driver.ErrNotApplied, "somebody else is making "+key+", and it is not there yet", "try again",
				err)
		}
	}
}
