package redisstream

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Topics returns the topics in order of their names.
func (d *Driver) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	topics, err := d.topics.All(ctx, names...)
	if err != nil {
		return nil, err
	}
	infos := make([]driver.TopicInfo, 0, len(topics))
	for _, t := range topics {
		reply, err := t.Parts[0].run(ctx, &d.scripts.stats)
		if err != nil {
			return nil, err
		}
		if reply.Text(0) != "ok" {
			continue
		}
		f := reply.List(1).Map()
		info := driver.TopicInfo{Topic: t.Name, Config: configOf(f), Paused: f["paused"] == "1"}
		for _, g := range reply.List(3) {
			group := redisconn.ReplyOf(g)
			info.Groups = append(info.Groups, group.Text(0))
		}
		slices.Sort(info.Groups)
		infos = append(infos, info)
	}
	return infos, nil
}

// Stats adds up the counts of all partitions.
func (d *Driver) Stats(ctx context.Context, name string) (driver.TopicStats, error) {
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return driver.TopicStats{}, err
	}
	replies, err := consultAll(ctx, t, &d.scripts.stats, "")
	if err != nil {
		return driver.TopicStats{}, err
	}
	total := driver.TopicStats{Topic: name}
	for _, reply := range replies {
		redisshell.AddCounts(&total, reply)
	}
	return total, nil
}

// Get returns a message as every group sees it.
func (d *Driver) Get(ctx context.Context, target driver.Target) ([]driver.Entry, error) {
	t, err := d.topics.Existing(ctx, target.Topic, target.Check())
	if err != nil {
		return nil, err
	}
	var entries []driver.Entry
	for _, p := range partsOf(t, target) {
		reply, err := p.consult(ctx, &d.scripts.get, target.Group, placeText(target))
		if err != nil {
			return nil, err
		}
		for _, v := range reply.List(1) {
			item := redisconn.ReplyOf(v)
			entries = append(entries, p.entry(item))
		}
	}
	if len(entries) == 0 {
		return nil, redisshell.NoMessage(target)
	}
	return entries, nil
}

// partsOf returns where a message may be: a Ref says it, an id may be anywhere.
func partsOf(t *topic, target driver.Target) []*partition {
	if target.Ref.IsZero() {
		return t.Parts
	}
	if i := int(target.Ref.Partition); i >= 0 && i < len(t.Parts) {
		return t.Parts[i : i+1]
	}
	return nil
}

// placeText names a message, as scripts read it.
func placeText(target driver.Target) string {
	if target.Ref.IsZero() {
		return "i" + target.ID
	}
	return "r" + streamID(target.Ref)
}

// Browse returns a page of entries in one state, oldest first: dead letters of all partitions together, others one
// partition after the other.
func (d *Driver) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	q, err := q.Resolve(d.caps)
	t, err := d.topics.Existing(ctx, q.Topic, err)
	if err != nil {
		return driver.Page{}, err
	}
	look := func(ctx context.Context, parts []*partition, after []string, most, scan int) ([]redisconn.Reply, error) {
		calls, replies := make([]*scriptCall, len(parts)), make([]redisconn.Reply, len(parts))
		for i, p := range parts {
			calls[i] = &scriptCall{part: p, script: &d.scripts.browse,
				args: []any{q.Group, redisshell.LetterOf(q.State), after[i], most, scan}}
		}
		if err := d.runAll(ctx, calls); err != nil {
			return nil, err
		}
		for i, c := range calls {
			if err := c.part.refused(c.script, q.Group, c.reply); err != nil {
				return nil, err
			}
			replies[i] = c.reply
		}
		return replies, nil
	}
	b := redisshell.Browser[*partition]{Parts: t.Parts, Look: look, Entry: (*partition).entry}
	return b.Page(ctx, q, d.caps)
}
