package admin

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/internal/letterjson"
)

// The forms in which things of other packages are answered. Lists are never null.

func viewConfig(c driver.TopicConfig) api.Config {
	return api.Config{MaxMessages: c.MaxMessages, MaxBytes: c.MaxBytes, Keep: api.Duration(c.Keep), KeepMost: c.KeepMost,
		ExpiredDead: c.ExpiredDead, Partitions: c.Partitions}
}

func configOf(c api.Config) driver.TopicConfig {
	return driver.TopicConfig{MaxMessages: c.MaxMessages, MaxBytes: c.MaxBytes, Keep: time.Duration(c.Keep),
		KeepMost:    c.KeepMost,
		ExpiredDead: c.ExpiredDead, Partitions: c.Partitions}
}

func viewTopic(info driver.TopicInfo, s driver.TopicStats) api.Topic {
	t := api.Topic{Topic: s.Topic, Paused: s.Paused, Why: whyTopic(s), Config: viewConfig(info.Config),
		Published: s.Published, Fanned: s.Fanned,
		Expired: s.Expired, Cancelled: s.Cancelled, Delayed: s.Delayed, Held: s.Held, Invalid: s.Invalid,
		Messages: s.Messages, Bytes: s.Bytes,
		Groups: make([]api.Group, len(s.Groups))}
	for i, g := range s.Groups {
		t.Groups[i] = viewGroup(s, g)
		t.Ready, t.Inflight, t.Waiting, t.Dead = t.Ready+g.Ready, t.Inflight+g.Inflight, t.Waiting+g.Waiting, t.Dead+g.Dead
		t.Oldest = max(t.Oldest, api.Duration(g.Oldest))
	}
	return t
}

func viewGroup(s driver.TopicStats, g driver.GroupStats) api.Group {
	return api.Group{Group: g.Group, Order: g.Order.String(), Paused: g.Paused, Why: whyGroup(s, g),
		Consumers: g.Consumers,
		Received:  g.Received, Acked: g.Acked, Dropped: g.Dropped, Expired: g.Expired, Cancelled: g.Cancelled,
		Ready: g.Ready, Inflight: g.Inflight, Waiting: g.Waiting, Dead: g.Dead,
		Redelivered: g.Redelivered, Retried: g.Retried, Died: g.Died, Oldest: api.Duration(g.Oldest)}
}

// viewEntry shows a message as far as whoever asks may see it; of a dead letter also what the shipped strategies do
// next.
func (a *API) viewEntry(ctx context.Context, topic string, e driver.Entry) api.Message {
	payload := auth.From(ctx).May(auth.Payload, topic)
	if payload {
		e, _ = a.broker.UndoEntry(ctx, e) // what cannot be undone is shown as it is stored
	}
	v := api.Message{Record: letterjson.Of(topic, e)}
	if v.Dead != nil {
		r := deadletter.RecoveryOf(ctx, deadletter.Letter{Entry: e, From: topic}, nil)
		v.Dead.Recovery, v.Dead.NextRetryAt, v.Dead.RecoveryPriority = string(r.Plan), jsontime.At(r.NextRetry), r.Priority
	}
	a.maskOf(topic).show(&v, payload)
	return v
}

func (a *API) viewEntries(ctx context.Context, topic string, entries []driver.Entry) []api.Message {
	out := make([]api.Message, len(entries))
	for i, e := range entries {
		out[i] = a.viewEntry(ctx, topic, e)
	}
	return out
}

// refText is the text of a ref, empty for none.
func refText(r driver.Ref) string {
	if r.IsZero() {
		return ""
	}
	return r.String()
}

// list makes JSON write an empty list instead of null.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}
