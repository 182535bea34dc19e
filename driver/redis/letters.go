package redis

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// letters are the dead letters of one shard that a page has not come to yet.
type letters = redisshell.Letters[*browser]

// browseDead returns a page of dead letters, oldest death first. A cursor has a place in every shard.
func (d *Driver) browseDead(ctx context.Context, t *topic, q driver.Query) (driver.Page, error) {
	part := q
	part.Limit = redisshell.AtOnce(q, len(t.shards))
	browsers := make([]*browser, len(t.shards))
	for i, s := range t.shards {
		browsers[i] = &browser{q: part, s: s}
	}
	all, err := redisshell.LettersAfter(q.Cursor, browsers)
	if err != nil {
		return driver.Page{}, err
	}
	for _, l := range all {
		if l.Part.at = l.After; err == nil {
			err = l.Part.check(ctx, t)
		}
	}
	if err != nil {
		return driver.Page{}, err
	}
	page, next, err := redisshell.PageOfLetters(q, all, func() error {
		for _, l := range all {
			if err := readLetters(ctx, l); err != nil {
				return err
			}
		}
		return nil
	})
	page.Next = q.Continue(d.caps, next)
	return page, err
}

// readLetters reads more of a shard of which nothing is left to list.
func readLetters(ctx context.Context, l *letters) error {
	for l.Wanting() {
		found, ended, err := l.Part.members(ctx, l.Part.groupKey(keyDead), "")
		if err != nil {
			return err
		}
		if l.More = !ended; len(found) == 0 {
			continue
		}
		if err := addLetters(ctx, l, found); err != nil {
			return err
		}
		if l.Wanting() {
			l.After = l.Part.at // nothing but what belongs to no message
		}
	}
	return nil
}

// addLetters looks up what is at some places.
func addLetters(ctx context.Context, l *letters, found []place) error {
	seqs := make([]string, len(found))
	for i, p := range found {
		seqs[i] = p.seq
	}
	group := l.Part.q.Group
	v, err := l.Part.s.load(ctx, seqs, []string{group})
	if err != nil || v == nil {
		return err
	}
	for _, p := range found {
		if e, ok := v.entry(p.seq, group); ok && e.Dead != nil {
			l.Add(e, p.at)
		}
	}
	return nil
}
