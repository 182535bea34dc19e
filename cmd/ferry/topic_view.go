package main

import (
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// topicView is the JSON form of a topic. Its counts are sums over the groups.
type topicView struct {
	Topic     string            `json:"topic"`
	Paused    bool              `json:"paused"`
	Health    string            `json:"health"`
	Config    *configView       `json:"config,omitempty"`
	Published uint64            `json:"published"`
	Fanned    uint64            `json:"fanned"`
	Expired   uint64            `json:"expired"`
	Cancelled uint64            `json:"cancelled"`
	Delayed   int64             `json:"delayed"`
	Held      int64             `json:"held"`
	Invalid   int64             `json:"invalid"`
	Messages  int64             `json:"messages"`
	Bytes     int64             `json:"bytes"`
	Ready     int64             `json:"ready"`
	Inflight  int64             `json:"inflight"`
	Waiting   int64             `json:"waiting"`
	Dead      int64             `json:"dead"`
	Oldest    jsontime.Duration `json:"oldest"`
	Groups    []groupView       `json:"groups"`

	stats driver.TopicStats
}

// groupView is the JSON form of a group.
type groupView struct {
	Group       string            `json:"group"`
	Order       string            `json:"order"`
	Paused      bool              `json:"paused"`
	Consumers   int               `json:"consumers"`
	Received    uint64            `json:"received"`
	Acked       uint64            `json:"acked"`
	Dropped     uint64            `json:"dropped"`
	Expired     uint64            `json:"expired"`
	Cancelled   uint64            `json:"cancelled"`
	Ready       int64             `json:"ready"`
	Inflight    int64             `json:"inflight"`
	Waiting     int64             `json:"waiting"`
	Dead        int64             `json:"dead"`
	Redelivered uint64            `json:"redelivered"`
	Retried     uint64            `json:"retried"`
	Died        uint64            `json:"died"`
	Oldest      jsontime.Duration `json:"oldest"`
}

func viewTopic(st driver.TopicStats) topicView {
	v := topicView{
		Topic: st.Topic, Paused: st.Paused, Health: health(st), Published: st.Published, Fanned: st.Fanned,
		Expired: st.Expired, Cancelled: st.Cancelled,
		Delayed: st.Delayed, Held: st.Held, Invalid: st.Invalid, Messages: st.Messages, Bytes: st.Bytes,
		Groups: []groupView{}, stats: st,
	}
	for _, g := range st.Groups {
		v.Ready += g.Ready
		v.Inflight += g.Inflight
		v.Waiting += g.Waiting
		v.Dead += g.Dead
		v.Oldest = max(v.Oldest, jsontime.Duration(g.Oldest))
		v.Groups = append(v.Groups, viewGroup(g))
	}
	return v
}

func viewGroup(g driver.GroupStats) groupView {
	return groupView{
		Group: g.Group, Order: g.Order.String(), Paused: g.Paused, Consumers: g.Consumers, Received: g.Received,
		Acked: g.Acked, Dropped: g.Dropped,
		Expired: g.Expired, Cancelled: g.Cancelled, Ready: g.Ready, Inflight: g.Inflight, Waiting: g.Waiting, Dead: g.Dead,
		Redelivered: g.Redelivered, Retried: g.Retried, Died: g.Died, Oldest: jsontime.Duration(g.Oldest),
	}
}

func (v topicView) names() []string {
	names := make([]string, len(v.Groups))
	for i, g := range v.Groups {
		names[i] = g.Group
	}
	return names
}

var topicColumns = []column[topicView]{
	{title: "topic", width: 40, cell: func(v topicView) any { return v.Topic }},
	{title: "groups", number: true, cell: func(v topicView) any { return len(v.Groups) }},
	{title: "ready", number: true, cell: func(v topicView) any { return v.Ready }},
	{title: "in flight", number: true, cell: func(v topicView) any { return v.Inflight }},
	{title: "waiting", number: true, cell: func(v topicView) any { return v.Waiting }},
	{title: "delayed", number: true, cell: func(v topicView) any { return v.Delayed }},
	{title: "dead", number: true, cell: func(v topicView) any { return v.Dead }},
	{title: "invalid", number: true, cell: func(v topicView) any { return v.Invalid }},
	{title: "oldest", number: true, cell: func(v topicView) any { return ago(v.Oldest) }},
	{title: "health", width: 60, cell: func(v topicView) any { return v.Health }},
}

var groupColumns = []column[groupView]{
	{title: "group", width: 40, cell: func(v groupView) any { return v.Group }},
	{title: "order", cell: func(v groupView) any { return v.Order }},
	{title: "consumers", number: true, cell: func(v groupView) any { return v.Consumers }},
	{title: "received", number: true, cell: func(v groupView) any { return v.Received }},
	{title: "acked", number: true, cell: func(v groupView) any { return v.Acked }},
	{title: "ready", number: true, cell: func(v groupView) any { return v.Ready }},
	{title: "in flight", number: true, cell: func(v groupView) any { return v.Inflight }},
	{title: "waiting", number: true, cell: func(v groupView) any { return v.Waiting }},
	{title: "dead", number: true, cell: func(v groupView) any { return v.Dead }},
	{title: "redelivered", number: true, cell: func(v groupView) any { return v.Redelivered }},
	{title: "oldest", number: true, cell: func(v groupView) any { return ago(v.Oldest) }},
	{title: "", cell: func(v groupView) any { return pausedWord(v.Paused) }},
}

func pausedWord(paused bool) string {
	if paused {
		return "paused"
	}
	return ""
}

// health says in one sentence why nothing is happening, if nothing is.
func health(st driver.TopicStats) string {
	if st.Paused {
		return "paused"
	}
	for _, g := range st.Groups {
		switch {
		case g.Paused:
			return fmt.Sprintf("group %s is paused", g.Group)
		case g.Consumers == 0 && g.Ready > 0:
			return fmt.Sprintf("nobody consumes group %s", g.Group)
		}
	}
	switch {
	case len(st.Groups) == 0:
		return "no groups yet"
	case st.Invalid > 0:
		return "has messages that cannot be decoded"
	}
	return "ok"
}

// showTopic prints everything about a topic.
func (r *remote) showTopic(v topicView) error {
	if err := r.sayf("%s  %s", v.Topic, v.Health); err != nil {
		return err
	}
	err := r.fields(
		field{"bound", v.Config.bound()}, field{"keep", v.Config.keep()}, field{"expired", v.Config.expired()},
		field{"partitions", plain(v.Config.Partitions)},
		field{"unsettled", fmt.Sprintf("%d messages, %d bytes", v.Messages, v.Bytes)},
		field{"published", topicEquation(v.stats)}, field{"parse errors", plain(int(v.Invalid))},
	)
	if err != nil {
		return err
	}
	return list(r, groupColumns, v.Groups, "")
}

func (c configView) bound() string {
	switch {
	case c.MaxMessages > 0 && c.MaxBytes > 0:
		return fmt.Sprintf("%d messages, %d bytes", c.MaxMessages, c.MaxBytes)
	case c.MaxMessages > 0:
		return fmt.Sprintf("%d messages", c.MaxMessages)
	case c.MaxBytes > 0:
		return fmt.Sprintf("%d bytes", c.MaxBytes)
	}
	return "none"
}

func (c configView) keep() string {
	if c.Keep == 0 {
		return ""
	}
	if c.KeepMost > 0 {
		return fmt.Sprintf("settled messages for %v, at most %d", c.Keep, c.KeepMost)
	}
	return "settled messages for " + c.Keep.String()
}

func (c configView) expired() string {
	if c.ExpiredDead {
		return "to the dead letters"
	}
	return "discarded"
}

// plain returns a number, or nothing for 0.
func plain(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
