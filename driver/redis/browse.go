package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Browse returns a page of entries in one state: dead letters of all shards together in the order of dying; others one
// shard after the other, in the order of publishing, and what waits or is delayed in the order of being due.
func (d *Driver) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	q, err := q.Resolve(d.caps)
	t, err := d.topics.Existing(ctx, q.Topic, err)
	if err != nil {
		return driver.Page{}, err
	}
	look := func(ctx context.Context, shards []*shard, after []string, most, scan int) ([]redisconn.Reply, error) {
		replies := make([]redisconn.Reply, len(shards))
		for i, s := range shards {
			var err error
			replies[i], err = s.consult(ctx, &d.scripts.browse, q.Group, redisshell.LetterOf(q.State), after[i], most, scan)
			if err != nil {
				return nil, err
			}
		}
		return replies, nil
	}
	b := redisshell.Browser[*shard]{Parts: t.Parts, Look: look, Entry: (*shard).entry}
	return b.Page(ctx, q, d.caps)
}

// entry makes an entry of what lua/view.lua tells.
func (s *shard) entry(v redisconn.Reply) driver.Entry {
	content := []byte(v.Text(10))
	m, err := envelope.Decode(content)
	if err != nil {
		m = nil
	}
	return redisshell.EntryOf(v, s.t.Name, s.ref(uint64(v.Number(1))), m, func() []byte { return content })
}
