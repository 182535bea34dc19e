package redisstream

import (
	"context"
	"errors"
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
		t, err := d.topics.Existing(ctx, name)
		if errors.Is(err, driver.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		reply, err := t.parts[0].run(ctx, &d.scripts.stats)
		if err != nil {
			return nil, err
		}
		if reply.Text(0) != "ok" {
			continue
		}
		f := mapOf(reply.List(1))
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

// mapOf reads an answer to HGETALL.
func mapOf(l redisconn.Reply) map[string]string {
	m := make(map[string]string, len(l)/2)
	for i := 0; i+1 < len(l); i += 2 {
		m[l.Text(i)] = l.Text(i + 1)
	}
	return m
}

func whole(f map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(f[name], 10, 64)
	return n
}

// Stats adds up the counts of all partitions.
func (d *Driver) Stats(ctx context.Context, name string) (driver.TopicStats, error) {
	if err := driver.CheckName("topic", name); err != nil {
		return driver.TopicStats{}, err
	}
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return driver.TopicStats{}, err
	}
	replies, err := d.each(ctx, t, &d.scripts.stats, "")
	if err != nil {
		return driver.TopicStats{}, err
	}
	st := driver.TopicStats{Topic: name}
	groups := map[string]*driver.GroupStats{}
	members := map[string]map[string]bool{}
	for _, reply := range replies {
		f, waits := mapOf(reply.List(1)), reply.List(2)
		st.Paused = st.Paused || f["paused"] == "1"
		st.Published += uint64(whole(f, "published"))
		st.Fanned += uint64(whole(f, "fanned"))
		st.Expired += uint64(whole(f, "expired"))
		st.Cancelled += uint64(whole(f, "cancelled"))
		st.Messages += whole(f, "messages")
		st.Bytes += whole(f, "bytes")
		for i, to := range []*int64{&st.Delayed, &st.Held, &st.Invalid} {
			*to += waits.Number(i)
		}
		for _, x := range reply.List(3) {
			item := redisconn.ReplyOf(x)
			g := groups[item.Text(0)]
			if g == nil {
				g = &driver.GroupStats{Group: item.Text(0)}
				groups[g.Group], members[g.Group] = g, map[string]bool{}
			}
			addGroup(g, item, members[g.Group])
		}
	}
	for _, g := range groups {
		g.Consumers = len(members[g.Group])
		st.Groups = append(st.Groups, *g)
	}
	slices.SortFunc(st.Groups, func(a, b driver.GroupStats) int { return strings.Compare(a.Group, b.Group) })
	return st, nil
}

// addGroup adds what a partition counts for a group.
func addGroup(g *driver.GroupStats, item redisconn.Reply, members map[string]bool) {
	f := mapOf(item.List(2))
	if item.Text(1) == "1" {
		g.Order = driver.Relaxed
	}
	g.Paused = g.Paused || f["paused"] == "1"
	g.Received += uint64(whole(f, "received"))
	g.Acked += uint64(whole(f, "acked"))
	g.Dropped += uint64(whole(f, "dropped"))
	g.Expired += uint64(whole(f, "expired"))
	g.Cancelled += uint64(whole(f, "cancelled"))
	g.Redelivered += uint64(whole(f, "redelivered"))
	g.Retried += uint64(whole(f, "retried"))
	g.Died += uint64(whole(f, "graves"))
	g.Inflight += item.Number(3)
	g.Waiting += item.Number(4)
	g.Dead += item.Number(5)
	g.Ready = int64(g.Received) - int64(g.Acked+g.Dropped+g.Expired+g.Cancelled) - g.Inflight - g.Waiting - g.Dead
	for _, m := range item.Texts(6) {
		members[m] = true
	}
	g.Oldest = max(g.Oldest, time.Duration(item.Number(7))*time.Millisecond)
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
		reply, err := p.run(ctx, &d.scripts.get, target.Group, placeText(target))
		if err != nil {
			return nil, err
		}
		if reply.Text(0) == "stale" {
			d.topics.Forget(t)
			return nil, errNoTopic(t.name)
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

// browsable says why there is nothing to list.
func (d *Driver) browsable(t *topic, q driver.Query, reply redisconn.Reply) error {
	switch reply.Text(0) {
	case "stale":
		d.topics.Forget(t)
		return errNoTopic(t.name)
	case "missing":
		return t.noGroup(q.Group, reply.Texts(1))
	}
	return nil
}

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
		reply, err := p.run(ctx, &d.scripts.browse, q.Group, letter, rest, limit, min(scan, 1000))
		if err != nil {
			return page, err
		}
		if err := d.browsable(t, q, reply); err != nil {
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
