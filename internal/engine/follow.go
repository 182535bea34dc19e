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
	if r := t.unlock(now); r != nil && len(seen) > 0 { // what is not in memory was written with it, or before
		if err := e.outcome(ctx, r, false); err != nil {
			return driver.FollowPage{}, err
		}
	}
	page.Entries, err = t.complete(seen)
	return page, err
}

// since returns the newest messages behind a number, as the topic has them.
func (t *topic) since(after uint64, most int, now moment) (seen []view) {
	if m := uint64(most); t.seq > after+m {
		after = t.seq - m
	}
	for seq := after + 1; seq <= t.seq; seq++ {
		if e := t.log.get(seq); e != nil {
			seen = append(seen, t.view(e, now))
		} else if e := t.invalid.get(seq); e != nil {
			seen = append(seen, t.view(e, now))
		} else if t.cold.find(seq) >= 0 {
			seen = append(seen, view{Entry: driver.Entry{Ref: driver.Ref{Pos: seq}}, onDisk: true})
		}
	}
	return seen
}
