package redisstream

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// letters are the dead letters of one partition that a page has not come to yet. Their places are scores.
type letters = redisshell.Letters[*partition]

// browseDead returns a page of dead letters, oldest death first. A cursor has a place in every partition.
func (d *Driver) browseDead(ctx context.Context, t *topic, q driver.Query) (driver.Page, error) {
	all, err := redisshell.LettersAfter(q.Cursor, t.parts)
	if err != nil {
		return driver.Page{}, err
	}
	for _, l := range all {
		if l.After != "" && !isScore(l.After) {
			return driver.Page{}, redisshell.ErrCursor(q.Cursor, nil)
		}
	}
	page, next, err := redisshell.PageOfLetters(q, all, func() error { return d.readLetters(ctx, t, q, all) })
	page.Next = next
	return page, err
}

// readLetters reads more of each partition of which nothing is left to list.
func (d *Driver) readLetters(ctx context.Context, t *topic, q driver.Query, all []*letters) error {
	most := redisshell.AtOnce(q, len(all))
	for {
		var calls []*scriptCall
		var wanting []*letters
		for _, l := range all {
			if l.Wanting() {
				args := []any{q.Group, letterOf(q.State), l.After, most, most}
				calls = append(calls, &scriptCall{part: l.Part, script: &d.scripts.browse, args: args})
				wanting = append(wanting, l)
			}
		}
		if len(calls) == 0 {
			return nil
		}
		d.runAll(ctx, calls)
		for i, l := range wanting {
			if calls[i].err != nil {
				return calls[i].err
			}
			if err := d.absent(t, q.Group, calls[i].reply); err != nil {
				return err
			}
			addLetters(l, calls[i].reply)
		}
	}
}

// addLetters takes in what lua/browse.lua found.
func addLetters(l *letters, reply redisconn.Reply) {
	for _, v := range reply.List(1) {
		item := redisconn.ReplyOf(v)
		if e := l.Part.entry(item); e.Dead != nil {
			l.Add(e, item.Text(13))
		}
	}
	next := reply.Text(3)
	if l.More = next != ""; l.Wanting() {
		l.After = next // nothing but what belongs to no message
	}
}
