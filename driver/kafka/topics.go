package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// widen adds partitions to an internal topic for those that somebody has added to the topic it belongs to.
func (d *Driver) widen(ctx context.Context, name string, partitions int) error {
	have, err := d.partitionsOf(ctx, name)
	if err != nil || have >= partitions {
		return err
	}
	resp, err := d.admin.UpdatePartitions(ctx, partitions, name)
	if err == nil {
		err = resp.Error()
	}
	if isKafka(err, kerr.InvalidPartitions) { // another member was faster
		return nil
	}
	return d.unreached("adding partitions to "+name, err)
}

// checkWidth refuses a topic that has fewer partitions than a group was made for: what waits in the others would never be seen.
func (d *Driver) checkWidth(ctx context.Context, t *topicState, group string) error {
	had, err := d.partitionsOf(ctx, d.sideTopic(t.name, group))
	if err != nil || had <= t.partitions {
		return err
	}
	return driver.NewError(driver.ErrConflict, fmt.Sprintf("topic %q has %d partitions, and its group %q was made for %d", t.name, t.partitions, group, had), d.widenHint(t.name, had), nil)
}

func (d *Driver) widenHint(topic string, partitions int) string {
	return fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --alter --topic %s --partitions %d", d.o.Brokers[0], d.mainTopic(topic), partitions)
}

// createTopics makes the topics that do not exist, with safe settings.
func (d *Driver) createTopics(ctx context.Context, specs ...topicSpec) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 15_000
	for _, s := range specs {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.name, int32(s.partitions), int16(d.o.Replicas)
		if d.o.Replicas > 1 {
			s.configs["min.insync.replicas"] = text("2")
		}
		for k, v := range s.configs {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, v
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, d.client)
	if err != nil {
		return d.unreached("creating topics", err)
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return driver.NewError(driver.ErrNotApplied, "topic "+t.Topic+" could not be created", "check Options.Replicas and the ACLs", err)
		}
	}
	return d.awaitLeaders(ctx, specs)
}

// awaitLeaders waits until the new partitions can be written: metadata of KRaft brokers comes a little later.
func (d *Driver) awaitLeaders(ctx context.Context, specs []topicSpec) error {
	for {
		var names []string
		for _, s := range specs {
			names = append(names, s.name)
		}
		found, err := d.admin.ListTopics(ctx, names...)
		if err != nil {
			return d.unreached("reading the metadata", err)
		}
		missing := false
		for _, n := range names {
			t, ok := found[n]
			missing = missing || !ok || t.Err != nil || len(t.Partitions) == 0
			for _, p := range t.Partitions {
				missing = missing || p.Err != nil || p.Leader < 0
			}
		}
		if !missing && d.led(ctx, names) {
			return nil
		}
		if err := pause(ctx, fetchWait/5); err != nil {
			return err
		}
	}
}

// led reports whether the leaders of topics know it themselves: they may learn of it later than who was asked for the metadata.
func (d *Driver) led(ctx context.Context, names []string) bool {
	ends, err := d.admin.ListEndOffsets(ctx, names...)
	if err == nil {
		err = ends.Error()
	}
	return !isKafka(err, kerr.UnknownTopicOrPartition) && !isKafka(err, kerr.NotLeaderForPartition)
}

// partitionsOf asks how many partitions a topic has; 0 when it does not exist.
func (d *Driver) partitionsOf(ctx context.Context, name string) (int, error) {
	found, err := d.admin.ListTopics(ctx, name)
	if err != nil {
		return 0, d.unreached("reading the metadata", err)
	}
	if t, ok := found[name]; ok && t.Err == nil {
		return len(t.Partitions), nil
	}
	return 0, nil
}

// partitionsNow are those of a topic, with any that somebody added since we know it.
func (d *Driver) partitionsNow(ctx context.Context, t *topicState) ([]int32, error) {
	n, err := d.partitionsOf(ctx, t.main)
	return span(max(n, t.partitions)), err
}

// tombstone deletes a key of a compacted topic.
func tombstone(topic string, partition int32, key string) *kgo.Record {
	return &kgo.Record{Topic: topic, Partition: partition, Key: []byte(key)}
}
