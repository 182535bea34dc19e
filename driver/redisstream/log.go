package redisstream

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

var _ driver.Log = (*Driver)(nil)

// Partitions tells of each partition of a topic what it holds, and how far each group has come in it.
func (d *Driver) Partitions(ctx context.Context, name string) ([]driver.Partition, error) {
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return nil, err
	}
	replies, err := consultAll(ctx, t, &d.scripts.progress, "")
	if err != nil {
		return nil, err
	}
	all := make([]driver.Partition, len(replies))
	for i, r := range replies {
		p := t.Parts[i]
		all[i] = driver.Partition{Partition: int32(i), Entries: r.Number(1), First: p.ref(r.Text(2)), Last: p.ref(r.Text(3)),
			Memory: r.Number(4)}
		for _, x := range r.List(5) {
			g := redisconn.ReplyOf(x)
			all[i].Groups = append(all[i].Groups, partitionGroup(g))
		}
	}
	return all, nil
}

func partitionGroup(g redisconn.Reply) driver.PartitionGroup {
	pg := driver.PartitionGroup{Group: g.Text(0), Owner: g.Text(1), Lag: g.Number(2), Pending: g.Number(3)}
	for _, x := range g.List(4) {
		c := redisconn.ReplyOf(x)
		pg.Consumers = append(pg.Consumers,
			driver.PartitionConsumer{Instance: c.Text(0), Pending: c.Number(1),
				Idle: time.Duration(c.Number(2)) * time.Millisecond})
	}
	slices.SortFunc(pg.Consumers, func(a, b driver.PartitionConsumer) int { return cmp.Compare(a.Instance, b.Instance) })
	return pg
}

// Pending returns a page of what a group has read and not settled. A cursor is a partition and the last id of it.
func (d *Driver) Pending(ctx context.Context, q driver.PendingQuery) (driver.PendingPage, error) {
	page := driver.PendingPage{}
	q, err := q.Resolve(d.caps)
	t, err := d.topics.Existing(ctx, q.Topic, err)
	if err != nil {
		return page, err
	}
	at, after := 0, "0-0"
	if q.Cursor != "" {
		n, rest, _ := strings.Cut(q.Cursor, ":") // it is as this query ended
		if at, err = strconv.Atoi(n); err != nil {
			return page, err
		}
		after = rest
	}
	for ; at < len(t.Parts); at++ {
		p := t.Parts[at]
		reply, err := p.consult(ctx, &d.scripts.pending, q.Group, q.Instance, after, q.Limit-len(page.Entries))
		if err != nil {
			return page, err
		}
		for _, x := range reply.List(1) {
			v := redisconn.ReplyOf(x)
			page.Entries = append(page.Entries, p.pendingEntry(v))
			after = v.Text(0)
		}
		if len(page.Entries) >= q.Limit {
			page.Next = q.Continue(d.caps, strconv.Itoa(at)+":"+after)
			return page, nil
		}
		after = "0-0"
	}
	return page, nil
}

func (p *partition) pendingEntry(v redisconn.Reply) driver.PendingEntry {
	return driver.PendingEntry{Ref: p.ref(v.Text(0)), Instance: v.Text(1),
		Idle:       time.Duration(v.Number(2)) * time.Millisecond,
		Deliveries: int(v.Number(3)), State: redisshell.StateOf(v.Text(4)), ID: v.Text(5)}
}

// Replay makes what is kept in a range ready again for a group.
func (d *Driver) Replay(ctx context.Context, name, group string, o driver.ReplayOptions) (driver.ResetReport, error) {
	t, err := d.topics.Existing(ctx, name, o.Check(name, group))
	if err != nil {
		return driver.ResetReport{}, err
	}
	if o.From.From == driver.FromEnd {
		o.From.From = driver.FromBegin
	}
	return d.rewind(ctx, t.Parts,
		rewind{group: group, from: o.From, to: o.To, cause: driver.CauseReplay, dry: o.DryRun, force: true})
}
