package cluster

import (
	"context"
	"errors"
	"maps"
	"strconv"

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
	_, err = Whole(d.Admin.UpdatePartitions(ctx, partitions, name))
	if IsKafka(err, kerr.InvalidPartitions) { // another member was faster
		return nil
	}
	return d.Unreached("adding partitions to "+name, err)
}

const (
	aroundBody  = 100 << 10 // what a record has around its body: headers, key, id
	historyRoom = 300 << 10 // what a history may take, and what a dead letter says once more of its last failure
	batchRoom   = 100 << 10 // what Kafka adds, and more
	compactRoom = 8 << 20   // a topic that keeps the newest record of each key takes at least this
)

// A history that is full, and a last failure with its fingerprint, fit.
const _ = uint(historyRoom - (driver.HistoryLimit+2)*(2*driver.ErrorLimit+driver.StackLimit))

// LeastLimit is the least max.message.bytes with which a topic takes bodies of a size; compact is one that keeps the
// newest record of each key.
func LeastLimit(maxBody int, compact bool) int {
	if compact {
		return maxBody + aroundBody + historyRoom
	}
	return maxBody + aroundBody
}

// BatchLimit is the max.message.bytes that such a topic is made with.
func BatchLimit(maxBody int, compact bool) int {
	if compact {
		return max(compactRoom, LeastLimit(maxBody, true)+batchRoom)
	}
	return LeastLimit(maxBody, false) + batchRoom
}

// TopicSpec is a Kafka topic that must exist. Nothing in it ends by itself.
type TopicSpec struct {
	Name       string
	Partitions int
	MaxBody    int               // of what is in it one after the other; 0: it keeps the newest record of each key
	More       map[string]string // settings
}

// settings are all of a topic.
func (s TopicSpec) settings(o Settings) map[string]string {
	all := map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "-1", "retention.bytes": "-1",
		"message.timestamp.type": "LogAppendTime", "max.message.bytes": strconv.Itoa(BatchLimit(o.MaxBody, true))}
	if s.MaxBody > 0 {
		all["cleanup.policy"], all["max.message.bytes"] = "delete", strconv.Itoa(BatchLimit(s.MaxBody, false))
	} else {
		all["segment.ms"], all["min.cleanable.dirty.ratio"] = "3600000", "0.1"
	}
	if o.Replicas > 1 {
		all["min.insync.replicas"] = "2"
	}
	maps.Copy(all, s.More)
	return all
}

// CreateTopics makes the topics that do not exist, with safe settings.
func (d *Cluster) CreateTopics(ctx context.Context, specs ...TopicSpec) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 15_000
	for _, s := range specs {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.Name, int32(s.Partitions), int16(d.Settings.Replicas)
		for k, v := range s.settings(d.Settings) {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = k, &v
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

// awaitLeaders waits until the new partitions can be written: metadata of KRaft brokers comes a little later, and the
// leaders themselves may learn of it later than who was asked for it.
func (d *Cluster) awaitLeaders(ctx context.Context, specs []TopicSpec) error {
	var names []string
	for _, s := range specs {
		names = append(names, s.Name)
	}
	for {
		ends, err := Whole(d.Admin.ListEndOffsets(ctx, names...))
		switch {
		case err != nil && !kerr.IsRetriable(err):
			return d.Unreached("reading the metadata", err)
		case err == nil && len(ends) == len(names):
			return nil
		}
		if err := Pause(ctx, FetchWait/5); err != nil {
			return err
		}
	}
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
