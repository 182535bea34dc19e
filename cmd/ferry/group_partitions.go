package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// partitionView is the JSON form of how far a group has come in a partition.
type partitionView struct {
	Partition int32          `json:"partition"`
	Group     string         `json:"group"`
	Owner     string         `json:"owner"`
	Lag       int64          `json:"lag"`
	Pending   int64          `json:"pending"`
	Consumers []consumerView `json:"consumers"`
	Entries   int64          `json:"entries"`
	Memory    int64          `json:"memory"`
}

// consumerView is the JSON form of what a consumer has pending.
type consumerView struct {
	Instance string `json:"instance"`
	Pending  int64  `json:"pending"`
}

var partitionColumns = []column[partitionView]{
	{title: "partition", number: true, cell: func(v partitionView) any { return v.Partition }},
	{title: "group", width: 40, cell: func(v partitionView) any { return v.Group }},
	{title: "owner", width: 40, cell: func(v partitionView) any { return v.Owner }},
	{title: "lag", number: true, cell: func(v partitionView) any { return v.Lag }},
	{title: "pending", number: true, cell: func(v partitionView) any { return v.Pending }},
	{title: "pending with", width: 60, cell: func(v partitionView) any { return v.holders() }},
	{title: "entries", number: true, cell: func(v partitionView) any { return v.Entries }},
	{title: "memory", number: true, cell: func(v partitionView) any { return v.Memory }},
}

func (v partitionView) holders() string {
	var words []string
	for _, c := range v.Consumers {
		if c.Pending > 0 {
			words = append(words, fmt.Sprintf("%s: %d", c.Instance, c.Pending))
		}
	}
	return strings.Join(words, ", ")
}

// listPartitions prints how far the groups of a topic have come in each partition.
func (s session) listPartitions(ctx context.Context, topic string) error {
	l, err := s.log(ctx, topic)
	if err != nil {
		return err
	}
	parts, err := l.Partitions(ctx, topic)
	if err != nil {
		return err
	}
	var rows []partitionView
	for _, p := range parts {
		for _, g := range p.Groups {
			v := partitionView{Partition: p.Partition, Group: g.Group, Owner: g.Owner, Lag: g.Lag, Pending: g.Pending,
				Consumers: []consumerView{}, Entries: p.Entries, Memory: p.Memory}
			for _, c := range g.Consumers {
				v.Consumers = append(v.Consumers, consumerView{c.Instance, c.Pending})
			}
			rows = append(rows, v)
		}
	}
	return list(s.remote, partitionColumns, rows, fmt.Sprintf("Topic %s has no groups yet; the first publish creates %q.",
		topic, driver.DefaultGroup))
}
