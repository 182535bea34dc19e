package redisstream

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Topics returns the topics in order of their names.
func (d *Driver) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	if err := d.shell.Refuse(); err != nil {
		return nil, err
	}
	names, err := d.topics.Names(ctx, names...)
	if err != nil {
		return nil, err
	}
	infos := make([]driver.TopicInfo, 0, len(names))
	for _, name := range names {
		t, err := d.topics.Lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		reply, err := t.parts[0].run(ctx, &d.scripts.stats)
		if err != nil {
			return nil, err
		}
		if reply.Text(0) != "ok" {
			continue
		}
		f := reply.List(1).Map()
		info := driver.TopicInfo{Topic: name, Config: configOf(f), Paused: f["paused"] == "1"}
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
	replies, err := d.each(ctx, t, &d.scripts.stats, "")
	if err != nil {
		return driver.TopicStats{}, err
	}
	total := driver.TopicStats{Topic: name}
	for _, reply := range replies {
		redisshell.AddCounts(&total, countsOf(name, reply))
	}
	return total, nil
}

// countsOf reads what lua/stats.lua counts in a partition.
func countsOf(topic string, reply redisconn.Reply) driver.TopicStats {
	st, waits := redisshell.TopicCounts(topic, reply.List(1).Map()), reply.List(2)
	st.Delayed, st.Held, st.Invalid = waits.Number(0), waits.Number(1), waits.Number(2)
	for _, x := range reply.List(3) {
		item := redisconn.ReplyOf(x)
		g := redisshell.GroupCounts(item.Text(0), item.List(2).Map(), item.Number(3), item.Number(4), item.Number(5))
		if item.Text(1) == "1" {
			g.Order = driver.Relaxed
		}
		g.Consumers, g.Oldest = len(item.List(6)), time.Duration(item.Number(7))*time.Millisecond
		st.Groups = append(st.Groups, g)
	}
	return st
}

// Get returns a message as every group sees it.
func (d *Driver) Get(ctx context.Context, target driver.Target) ([]driver.Entry, error) {
	if err := target.Check(); err != nil {
		return nil, err
	}
	t, err := d.topics.Existing(ctx, target.Topic)
	if err != nil {
		return nil, err
	}
	var entries []driver.Entry
	for _, p := range t.partsOf(target) {
		reply, err := d.in(ctx, t, p, &d.scripts.get, target.Group, target.Group, placeText(target))
		if err != nil {
			return nil, err
		}
		for _, v := range reply.List(1) {
			item := redisconn.ReplyOf(v)
			entries = append(entries, p.entry(item))
		}
	}
	if len(entries) == 0 {
		return nil, errNoMessage(target)
	}
	return entries, nil
}

func errNoMessage(target driver.Target) error {
	return driver.NewError(driver.ErrNotFound,
		fmt.Sprintf("topic %q has no message %q %v", target.Topic, target.ID, target.Ref),
		"it may be settled, deleted or expired", nil)
}

// partsOf returns where a message may be: a Ref says it, an id may be anywhere.
func (t *topic) partsOf(target driver.Target) []*partition {
	if target.Ref.IsZero() {
		return t.parts
	}
	if i := int(target.Ref.Partition); i >= 0 && i < len(t.parts) {
		return t.parts[i : i+1]
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
	if err != nil {
		return driver.Page{}, err
	}
	t, err := d.topics.Existing(ctx, q.Topic)
	if err != nil {
		return driver.Page{}, err
	}
	page, err := d.list(ctx, t, q)
	page.Next = q.Continue(d.caps, page.Next)
	return page, err
}

func (d *Driver) list(ctx context.Context, t *topic, q driver.Query) (driver.Page, error) {
	if q.State == driver.StateDead {
		return d.browseDead(ctx, t, q)
	}
	at, rest, err := cursorOf(q, len(t.parts))
	if err != nil {
		return driver.Page{}, err
	}
	return d.browse(ctx, t, q, letterOf(q.State), at, rest)
}

// cursorOf reads a cursor: a partition, and a place in it, which is a number, or "s" and the id of an entry.
func cursorOf(q driver.Query, parts int) (at int, rest string, err error) {
	if q.Cursor == "" {
		return 0, "", nil
	}
	n, rest, ok := strings.Cut(q.Cursor, ":")
	at, err = strconv.Atoi(n)
	id, inStream := strings.CutPrefix(rest, "s")
	if ok = ok && err == nil && at >= 0 && at < parts; ok && rest != "" {
		if inStream {
			ok = q.Group != "" && validID.MatchString(id)
		} else {
			ok = isScore(rest)
		}
	}
	if !ok {
		return 0, "", redisshell.ErrCursor(q.Cursor, nil)
	}
	return at, rest, nil
}

// isScore tells whether a text is the score of a member of a sorted set.
func isScore(s string) bool { _, err := strconv.ParseFloat(s, 64); return err == nil }

func (d *Driver) browse(ctx context.Context, t *topic, q driver.Query, letter string, at int,
	rest string) (driver.Page, error) {
	page := driver.Page{}
	for ; at < len(t.parts); at++ {
		limit, scan := q.Limit-len(page.Entries), q.MaxScan-page.Scanned
		if limit < 1 || scan < 1 {
			page.Next = strconv.Itoa(at) + ":" + rest
			return page, nil
		}
		p := t.parts[at]
		reply, err := d.in(ctx, t, p, &d.scripts.browse, q.Group, q.Group, letter, rest, limit, min(scan, 1000))
		if err != nil {
			return page, err
		}
		for _, v := range reply.List(1) {
			item := redisconn.ReplyOf(v)
			page.Entries = append(page.Entries, p.entry(item))
		}
		scanned, _ := strconv.Atoi(reply.Text(2))
		page.Scanned += scanned
		if rest = reply.Text(3); rest != "" {
			at--
			if len(page.Entries) >= q.Limit || page.Scanned >= q.MaxScan {
				page.Next = strconv.Itoa(at+1) + ":" + rest
				return page, nil
			}
		}
	}
	return page, nil
}
