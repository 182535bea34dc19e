package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Follow returns what was published after an earlier page. Messages are numbered without gaps, so that nothing is
// searched.
func (e *Engine) Follow(ctx context.Context, q driver.FollowQuery) (driver.FollowPage, error) {
	q, err := q.Resolve()
	if err != nil {
		return driver.FollowPage{}, err
	}
	now := e.now()
	t, err := e.lockExisting(q.Topic, now)
	if err != nil {
		return driver.FollowPage{}, err
	}
	page := driver.FollowPage{Published: t.stats.Published, Last: []driver.Ref{{Pos: t.seq}}}
	seen := t.since(q.Since(0, t.seq), q.Limit, now)
	page.Entries, err = t.complete(ctx, t.unlock(now), seen)
	return page, err
}

// since returns the newest messages behind a number, as the topic has them.
func (t *topic) since(after uint64, most int, now moment) (seen []view) {
	if m := uint64(most); t.seq > after+m {
		after = t.seq - m
	}
	for seq, e := range t.entries(after) {
		if e == nil {
			seen = append(seen, coldView(seq, nil))
		} else {
			seen = append(seen, t.view(e, now))
		}
	}
	return seen
}
