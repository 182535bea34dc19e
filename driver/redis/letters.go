package redis

import (
	"context"
	"net/url"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// letters are the dead letters of one shard that a page has not come to yet.
type letters struct {
	b     *browser
	after string // the place of the last one that was listed
	list  []letter
	more  bool // behind those in the list
}

// letter is a dead letter and its place among those of its shard, which are in the order of their deaths.
type letter struct {
	driver.Entry
	at string
}

// browseDead returns a page of dead letters, oldest death first. A cursor has a place in every shard.
func (d *Driver) browseDead(ctx context.Context, t *topic, q driver.Query) (driver.Page, error) {
	all, err := lettersAfter(q, t)
	if err != nil {
		return driver.Page{}, err
	}
	for _, l := range all {
		if err := l.b.check(ctx, t); err != nil {
			return driver.Page{}, err
		}
	}
	var page driver.Page
	for len(page.Entries) < q.Limit && page.Scanned < q.MaxScan {
		for _, l := range all {
			if err := l.read(ctx); err != nil {
				return driver.Page{}, err
			}
		}
		first := oldest(all)
		if first == nil {
			return page, nil
		}
		page.Entries = append(page.Entries, first.list[0].Entry)
		first.after, first.list = first.list[0].at, first.list[1:]
		page.Scanned++
	}
	page.Next = q.Continue(d.caps, cursorAfter(all))
	return page, nil
}

// deadCursor begins the cursor of a page of dead letters.
const deadCursor = "d"

func lettersAfter(q driver.Query, t *topic) ([]*letters, error) {
	all, places := make([]*letters, len(t.shards)), make([]string, len(t.shards))
	if q.Cursor != "" {
		rest, ours := strings.CutPrefix(q.Cursor, deadCursor)
		if places = strings.Split(rest, ","); !ours || len(places) != len(t.shards) {
			return nil, errCursor(q.Cursor, nil)
		}
	}
	part := q
	part.Limit = max(1, min(q.Limit, q.MaxScan, 4+2*q.Limit/len(all)))
	for i, s := range t.shards {
		at, err := url.QueryUnescape(places[i])
		if err != nil {
			return nil, errCursor(q.Cursor, err)
		}
		all[i] = &letters{b: &browser{q: part, s: s, at: at}, after: at, more: true}
	}
	return all, nil
}

// cursorAfter names the place in each shard, or nothing at the end.
func cursorAfter(all []*letters) string {
	places, more := make([]string, len(all)), false
	for i, l := range all {
		places[i] = url.QueryEscape(l.after)
		more = more || l.more || len(l.list) > 0
	}
	if !more {
		return ""
	}
	return deadCursor + strings.Join(places, ",")
}

// oldest returns the shard whose next letter died first, or nil at the end.
func oldest(all []*letters) *letters {
	var first *letters
	for _, l := range all {
		if len(l.list) > 0 && (first == nil || l.list[0].Dead.DiedAt.Before(first.list[0].Dead.DiedAt)) {
			first = l
		}
	}
	return first
}

// read reads more of a shard of which nothing is left to list.
func (l *letters) read(ctx context.Context) error {
	for l.more && len(l.list) == 0 {
		found, ended, err := l.b.members(ctx, l.b.groupKey(keyDead), "")
		if err != nil {
			return err
		}
		if l.more = !ended; len(found) == 0 {
			continue
		}
		if err := l.add(ctx, found); err != nil {
			return err
		}
		if len(l.list) == 0 {
			l.after = l.b.at // nothing but what belongs to no message
		}
	}
	return nil
}

// add looks up what is at some places.
func (l *letters) add(ctx context.Context, found []place) error {
	seqs := make([]string, len(found))
	for i, p := range found {
		seqs[i] = p.seq
	}
	v, err := l.b.s.load(ctx, seqs, []string{l.b.q.Group})
	if err != nil || v == nil {
		return err
	}
	for _, p := range found {
		if e, ok := v.entry(p.seq, l.b.q.Group); ok && e.Dead != nil {
			l.list = append(l.list, letter{e, p.at})
		}
	}
	return nil
}
