package redisstream

import (
	"context"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// letters are the dead letters of one partition that a page has not come to yet.
type letters struct {
	part  *partition
	after string // score of the last one that was listed
	list  []letter
	more  bool // behind those in the list
}

// letter is a dead letter and its score among those of its partition, which tells the order of their deaths.
type letter struct {
	driver.Entry
	score string
}

// browseDead returns a page of dead letters, oldest death first. A cursor has a place in every partition.
func (d *Driver) browseDead(ctx context.Context, t *topic, q driver.Query) (driver.Page, error) {
	page := driver.Page{}
	all, err := lettersAfter(q.Cursor, t)
	if err != nil {
		return page, err
	}
	for len(page.Entries) < q.Limit && page.Scanned < q.MaxScan {
		if err := d.readLetters(ctx, t, q, all); err != nil {
			return page, err
		}
		first := oldest(all)
		if first == nil {
			return page, nil
		}
		page.Entries = append(page.Entries, first.list[0].Entry)
		first.after, first.list = first.list[0].score, first.list[1:]
		page.Scanned++
	}
	page.Next = cursorAfter(all)
	return page, nil
}

// deadCursor begins the cursor of a page of dead letters.
const deadCursor = "d"

func lettersAfter(cursor string, t *topic) ([]*letters, error) {
	all, places := make([]*letters, len(t.parts)), make([]string, len(t.parts))
	if cursor != "" {
		rest, ours := strings.CutPrefix(cursor, deadCursor)
		if places = strings.Split(rest, ","); !ours || len(places) != len(t.parts) {
			return nil, errCursor()
		}
	}
	for i, p := range t.parts {
		if places[i] != "" && !isScore(places[i]) {
			return nil, errCursor()
		}
		all[i] = &letters{part: p, after: places[i], more: true}
	}
	return all, nil
}

// cursorAfter names the place in each partition, or nothing at the end.
func cursorAfter(all []*letters) string {
	places, more := make([]string, len(all)), false
	for i, l := range all {
		places[i] = l.after
		more = more || l.more || len(l.list) > 0
	}
	if !more {
		return ""
	}
	return deadCursor + strings.Join(places, ",")
}

// oldest returns the partition whose next letter died first, or nil at the end.
func oldest(all []*letters) *letters {
	var first *letters
	for _, l := range all {
		if len(l.list) > 0 && (first == nil || l.list[0].Dead.DiedAt.Before(first.list[0].Dead.DiedAt)) {
			first = l
		}
	}
	return first
}

// readLetters reads more of each partition of which nothing is left to list.
func (d *Driver) readLetters(ctx context.Context, t *topic, q driver.Query, all []*letters) error {
	most := max(1, min(q.Limit, q.MaxScan, 4+2*q.Limit/len(all)))
	for {
		var calls []*scriptCall
		var empty []*letters
		for _, l := range all {
			if l.more && len(l.list) == 0 {
				calls = append(calls, &scriptCall{part: l.part, script: &d.scripts.browse, args: []any{q.Group, letterOf(q.State), l.after, most, most}})
				empty = append(empty, l)
			}
		}
		if len(calls) == 0 {
			return nil
		}
		d.runAll(ctx, calls)
		for i, l := range empty {
			if calls[i].err != nil {
				return calls[i].err
			}
			if err := d.browsable(t, q, calls[i].reply); err != nil {
				return err
			}
			l.add(calls[i].reply)
		}
	}
}

// add takes in what lua/browse.lua found.
func (l *letters) add(reply redisconn.Reply) {
	for _, v := range reply.List(1) {
		item := redisconn.ReplyOf(v)
		if e := l.part.entry(item); e.Dead != nil {
			l.list = append(l.list, letter{e, item.Text(13)})
		}
	}
	next := reply.Text(3)
	if l.more = next != ""; l.more && len(l.list) == 0 {
		l.after = next // nothing but what belongs to no message
	}
}
