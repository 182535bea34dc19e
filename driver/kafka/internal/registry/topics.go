package registry

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// CheckWidth refuses a topic that has fewer partitions than a group was made for: what waits in the others would never be seen.
func (d *Registry) CheckWidth(ctx context.Context, t *TopicState, group string) error {
	had, err := d.cluster.PartitionsOf(ctx, d.cluster.RetryTopic(t.Name, group))
	if err != nil || had <= t.Partitions {
		return err
	}
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q has %d partitions, and its group %q was made for %d", t.Name, t.Partitions, group, had), d.WidenHint(t.Name, had), nil)
}

// WidenHint is how partitions are added to a topic.
func (d *Registry) WidenHint(topic string, partitions int) string {
	return fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --alter --topic %s --partitions %d", d.cluster.Settings.Brokers[0], d.cluster.MainTopic(topic), partitions)
}

// PartitionsNow are those of a topic, with any that somebody added since we know it.
func (d *Registry) PartitionsNow(ctx context.Context, t *TopicState) ([]int32, error) {
	n, err := d.cluster.PartitionsOf(ctx, t.Main)
	return cluster.Span(max(n, t.Partitions)), err
}
