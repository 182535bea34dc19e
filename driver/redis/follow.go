package redis

import (
	"context"
	"slices"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

var _ driver.Follower = (*Driver)(nil)

// Follow returns what was published after an earlier page. What several shards have is put in the order of publishing.
func (d *Driver) Follow(ctx context.Context, q driver.FollowQuery) (driver.FollowPage, error) {
	page := driver.FollowPage{}
	q, err := q.Resolve()
	t, err := d.topics.Existing(ctx, q.Topic, err)
	if err != nil {
		return page, err
	}
	ends, err := d.ends(ctx, t)
	if err != nil {
		return page, err
	}
	for i, s := range t.Parts {
		page.Last = append(page.Last, s.ref(ends[i].seq))
		page.Published += ends[i].published
		entries, err := s.between(ctx, q.Since(int32(i), ends[i].seq), ends[i].seq, q.Limit)
		if err != nil {
			return driver.FollowPage{}, err
		}
		page.Entries = append(page.Entries, entries...)
	}
	slices.SortStableFunc(page.Entries, func(a, b driver.Entry) int { return a.PublishedAt.Compare(b.PublishedAt) })
	page.Entries = page.Entries[max(0, len(page.Entries)-q.Limit):]
	return page, nil
}

// end is how far a shard has come: the last sequence number, and how many messages had one. Others went to what became
// ready again.
type end struct{ seq, published uint64 }

// ends asks all shards at once.
func (d *Driver) ends(ctx context.Context, t *topic) ([]end, error) {
	cmds := make([]*goredis.SliceCmd, len(t.Parts))
	_, err := d.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, s := range t.Parts {
			cmds[i] = p.HMGet(ctx, s.keys[keyTopic], "seq", "published")
		}
		return nil
	})
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	ends := make([]end, len(cmds))
	for i, c := range cmds {
		seq, ok := c.Val()[0].(string)
		if !ok {
			return nil, d.topics.Gone(t)
		}
		published, _ := c.Val()[1].(string)
		ends[i].seq, _ = strconv.ParseUint(seq, 10, 64)
		ends[i].published, _ = strconv.ParseUint(published, 10, 64)
	}
	return ends, nil
}

// between returns the messages with numbers behind after and up to last, as the topic has them: of many the newest.
func (s *shard) between(ctx context.Context, after, last uint64, most int) (entries []driver.Entry, err error) {
	if last > after+uint64(most) {
		after = last - uint64(most)
	}
	if after == last {
		return nil, nil
	}
	var seqs []any
	for n := after + 1; n <= last; n++ {
		seqs = append(seqs, strconv.FormatUint(n, 10))
	}
	reply, err := s.overAll(ctx, &s.d.scripts.follow, nil, seqs...)
	for _, v := range reply.List(1) {
		entries = append(entries, s.entry(redisconn.ReplyOf(v)))
	}
	return entries, err
}
