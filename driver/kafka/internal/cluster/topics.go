package cluster

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
)

// Span are the first n partitions.
func Span(n int) []int32 {
	ps := make([]int32, n)
	for i := range ps {
		ps[i] = int32(i)
	}
	return ps
}

// Widen adds partitions to an internal topic for those that somebody has added to the topic it belongs to.
func (d *Cluster) Widen(ctx context.Context, name string, partitions int) error {
	have, err := d.PartitionsOf(ctx, name)
	if err != nil || have >= partitions {
		return err
	}
	resp, err := d.Admin.UpdatePartitions(ctx, partitions, name)
	if err == nil {
		err = resp.Error()
	}
	if IsKafka(err, kerr.InvalidPartitions) { // another member was faster
		return nil
	}
	return d.Unreached("adding partitions to "+name, err)
}

// CreateTopics makes the topics that do not exist, with safe settings.
func (d *Cluster) CreateTopics(ctx context.Context, specs ...TopicSpec) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 15_000
	for _, s := range specs {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.Name, int32(s.Partitions), int16(d.Settings.Replicas)
		if d.Settings.Replicas > 1 {
			s.Configs["min.insync.replicas"] = Text("2")
		}
		for k, v := range s.Configs {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, v
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, d.Client)
	if err != nil {
		return d.Unreached("creating topics", err)
	}
	for _, t := range resp.Topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return driver.NewError(driver.ErrNotApplied, "topic "+t.Topic+" could not be created",
				"check Options.Replicas and the ACLs", err)
		}
	}
	return d.awaitLeaders(ctx, specs)
}

// awaitLeaders waits until the new partitions can be written: metadata of KRaft brokers comes a little later.
func (d *Cluster) awaitLeaders(ctx context.Context, specs []TopicSpec) error {
	for {
		var names []string
		for _, s := range specs {
			names = append(names, s.Name)
		}
		found, err := d.Admin.ListTopics(ctx, names...)
		if err != nil {
			return d.Unreached("reading the metadata", err)
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
		if err := Pause(ctx, FetchWait/5); err != nil {
			return err
		}
	}
}

// led reports whether the leaders of topics know it themselves: they may learn of it later than who was asked for the
// metadata.
func (d *Cluster) led(ctx context.Context, names []string) bool {
	ends, err := d.Admin.ListEndOffsets(ctx, names...)
	if err == nil {
		err = ends.Error()
	}
	return !IsKafka(err, kerr.UnknownTopicOrPartition) && !IsKafka(err, kerr.NotLeaderForPartition)
}

// PartitionsOf asks how many partitions a topic has; 0 when it does not exist.
func (d *Cluster) PartitionsOf(ctx context.Context, name string) (int, error) {
	found, err := d.Admin.ListTopics(ctx, name)
	if err != nil {
		return 0, d.Unreached("reading the metadata", err)
	}
	if t, ok := found[name]; ok && t.Err == nil {
		return len(t.Partitions), nil
	}
	return 0, nil
}
