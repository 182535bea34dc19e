package redisstream

import (
	"context"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/internal/redisconn"
)

// takeMuch claims where there is much: the claim script checks that we are the owner and gives what is not plain; then
// we read the stream ourselves, in a transaction that fails if the ownership has changed since; then what was read is
// booked. Entries that were read and never booked, because we died, are found by the next claim. All of it goes through
// the connection of the transaction: claims that have one each, and wait for another, may wait for each other.
func (c *claim) takeMuch(ctx context.Context, most int) error {
	c.got.more = true
	node, err := redisconn.NodeOf(ctx, c.s.d.client, c.part.key)
	if err != nil {
		return err
	}
	c.got.more = false
	c.conn = node.Conn()
	defer func() { _ = c.conn.Close() }()
	reply, err := c.watch(ctx, most)
	read, err := c.answer(ctx, reply, err)
	if !read || err != nil {
		c.unwatch(ctx)
		c.got.more, c.got.deep = c.got.more || len(c.got.ds) >= most, len(c.got.ds) >= smallClaim
		return err
	}
	room := most - len(c.got.ds)
	entries, err := c.read(ctx, room)
	if err != nil || len(entries) == 0 {
		c.got.more = err != nil
		if errors.Is(err, goredis.TxFailedErr) { // the ownership changed, or was renewed
			return nil
		}
		if err == nil {
			err = c.book(ctx, nil, room)
		}
		return err
	}
	c.lease, c.begun = c.s.d.shell.NewToken(), time.Now()
	err = c.book(ctx, entries, room)
	c.got.deep = len(entries) >= room
	c.got.more = c.got.more || c.got.deep
	return err
}

// watch begins to watch the ownership, and runs the claim script.
func (c *claim) watch(ctx context.Context, most int) (redisconn.Reply, error) {
	s := &c.s.d.scripts.claim
	args := append([]any{c.part.of}, c.args(most, true)...)
	var result *goredis.Cmd
	_, _ = c.conn.Pipelined(ctx, func(p goredis.Pipeliner) error {
		p.Do(ctx, "WATCH", c.part.fence(c.s.Options.Group))
		result = s.In(ctx, p, c.part.keys(), args...)
		return nil
	})
	reply, err := result.Slice()
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = s.On(ctx, c.conn, c.part.keys(), args)
	}
	if err = redisconn.Classify(err); err != nil {
		redisconn.Relocate(ctx, c.s.d.client, err)
		return nil, err
	}
	return reply, nil
}

func (c *claim) unwatch(ctx context.Context) { _ = c.conn.Do(ctx, "UNWATCH").Err() }

// read reads entries that nobody of the group has read.
func (c *claim) read(ctx context.Context, most int) (redisconn.Reply, error) {
	var result *goredis.Cmd
	_, err := c.conn.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		result = redisconn.DoOnce(ctx, p, "XREADGROUP", "GROUP", c.s.Options.Group, c.s.Options.Instance, "COUNT", most,
			"STREAMS", c.part.stream(), ">")
		return nil
	})
	if errors.Is(err, goredis.TxFailedErr) {
		return nil, err
	}
	reply, err := result.Result()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	switch r := reply.(type) { // as protocol 2 and 3 write it
	case []any:
		if len(r) == 1 {
			return redisconn.ReplyOf(r[0]).List(1), nil
		}
	case map[any]any:
		return redisconn.ReplyOf(r[c.part.stream()]), nil
	}
	return nil, nil
}

// oddKey marks an entry of another program, or one with a priority; no key contains it.
const oddKey = "\x01"

// book leases what was read. What must wait for its key is put aside by the script.
func (c *claim) book(ctx context.Context, entries redisconn.Reply, asked int) error {
	s, n := c.s, len(entries)
	args, keyed, last := make([]any, 10+n), false, ""
	ids := make([]byte, 0, 20*n)
	for i, e := range entries {
		item := redisconn.ReplyOf(e)
		if len(item) == 0 {
			return entries.ErrShape("XREADGROUP")
		}
		key := keyOf(item.List(1))
		last = item.Text(0)
		ids, args[10+i] = append(append(ids, last...), ' '), key
		keyed = keyed || key != ""
	}
	copy(args, []any{s.Options.Group, s.ID, c.x.epoch, c.lease, asked, s.Options.Lease.Milliseconds(),
		s.Options.MaxRun, n, last, ids})
	if !keyed {
		args = args[:10]
	}
	reply, err := c.run(ctx, &s.d.scripts.book, args...)
	c.heard(err)
	if err != nil {
		c.got.more = true
		return err
	}
	next := c.got.next
	if no, err := c.refused(reply); no || err != nil {
		return err
	}
	c.got.next = min(next, s.Options.Lease)
	aside := map[int]bool{}
	for _, v := range reply.List(2) {
		i, _ := v.(int64)
		aside[int(i)-1] = true
	}
	notes := reply.List(3)
	c.expect(len(entries) - len(aside))
	had := len(c.got.ds)
	defer func() { c.s.Hold(c.got.ds[had:]) }()
	for i, e := range entries {
		if aside[i] {
			continue
		}
		item := redisconn.ReplyOf(e)
		c.place = placeIf(reply.Text(4), i)
		if err := c.take(ctx, item, item.List(1), historyOfNote(notes.Text(i))); err != nil {
			return err
		}
	}
	c.got.more = c.got.more || len(aside) > 0
	return nil
}

// keyOf returns the key of a plain entry: its fields end with the key, if there is one, and the body.
func keyOf(fields redisconn.Reply) string {
	n := len(fields)
	if fields.Text(0) != "v" {
		return oddKey
	}
	for i := 4; i+4 < n; i += 2 { // behind version and id, before checksum and body
		if fields.Text(i) == "pri" {
			return oddKey
		}
	}
	if n >= 4 && fields.Text(n-4) == "key" {
		return fields.Text(n - 3)
	}
	return ""
}
