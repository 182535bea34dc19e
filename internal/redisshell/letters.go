package redisshell

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// letters are the dead letters of one part of a topic, a shard or a partition, that a page has not come to yet. Each
// part has its own in the order of their deaths.
type letters[P any] struct {
	part  P
	after string // the place of the last one that was listed
	more  bool   // there may be some behind those that were read
	read  []letter
}

// letter is a dead letter and its place among those of its part.
type letter struct {
	driver.Entry
	at string
}

// wanting reports whether more must be read before it is known which part has the oldest one.
func (l *letters[P]) wanting() bool { return l.more && len(l.read) == 0 }

// listLetters lists dead letters of all parts, oldest death first. A cursor has a place in every part.
func (b *Browser[P]) listLetters(ctx context.Context, q driver.Query) (page driver.Page, err error) {
	all, err := b.lettersAfter(q.Cursor)
	for err == nil && len(page.Entries) < q.Limit && page.Scanned < q.MaxScan {
		if err = b.readLetters(ctx, all, lettersAtOnce(q, len(all))); err != nil {
			break
		}
		first := oldest(all)
		if first == nil {
			return page, nil
		}
		page.Entries = append(page.Entries, first.read[0].Entry)
		first.after, first.read = first.read[0].at, first.read[1:]
		page.Scanned++
	}
	page.Next = cursorAfter(all)
	return page, err
}

// lettersAtOnce is how many letters of a part are read at once for a page: some more than its share, since deaths are
// not spread evenly.
func lettersAtOnce(q driver.Query, parts int) int {
	return max(1, min(q.Limit, q.MaxScan, 4+2*q.Limit/parts))
}

// deadCursor begins the cursor of a page of dead letters.
const deadCursor = "d"

// lettersAfter begins a page behind a cursor.
func (b *Browser[P]) lettersAfter(cursor string) ([]*letters[P], error) {
	all, places := make([]*letters[P], len(b.Parts)), make([]string, len(b.Parts))
	if cursor != "" {
		rest, ours := strings.CutPrefix(cursor, deadCursor)
		if places = strings.Split(rest, ","); !ours || len(places) != len(b.Parts) {
			return nil, errCursor(cursor, nil)
		}
	}
	for i, part := range b.Parts {
		at, err := url.QueryUnescape(places[i])
		if err != nil {
			return nil, errCursor(cursor, err)
		}
		all[i] = &letters[P]{part: part, after: at, more: true}
	}
	return all, nil
}

// readLetters reads more of each part of which nothing is left to list.
func (b *Browser[P]) readLetters(ctx context.Context, all []*letters[P], most int) error {
	for {
		var wanting []*letters[P]
		var parts []P
		var after []string
		for _, l := range all {
			if l.wanting() {
				wanting, parts, after = append(wanting, l), append(parts, l.part), append(after, l.after)
			}
		}
		if len(wanting) == 0 {
			return nil
		}
		replies, err := b.Look(ctx, parts, after, most, most)
		if err != nil {
			return err
		}
		for i, l := range wanting {
			for _, v := range replies[i].List(1) {
				view := redisconn.ReplyOf(v)
				if e := b.Entry(l.part, view); e.Dead != nil {
					l.read = append(l.read, letter{e, view.Text(13)})
				}
			}
			next := replies[i].Text(3)
			if l.more = next != ""; l.wanting() {
				l.after = next // nothing but what belongs to no message
			}
		}
	}
}

// errCursor refuses a cursor that no page ended with.
func errCursor(cursor string, cause error) error {
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("cursor %.40q is not one of this driver", cursor),
		"use the cursor that an earlier page ended with, or none", cause)
}

// cursorAfter names the place in each part, or nothing at the end.
func cursorAfter[P any](all []*letters[P]) string {
	places, more := make([]string, len(all)), false
	for i, l := range all {
		places[i] = url.QueryEscape(l.after)
		more = more || l.more || len(l.read) > 0
	}
	if !more {
		return ""
	}
	return deadCursor + strings.Join(places, ",")
}

// oldest returns the part whose next letter died first, or nil at the end.
func oldest[P any](all []*letters[P]) *letters[P] {
	var first *letters[P]
	for _, l := range all {
		if len(l.read) > 0 && (first == nil || l.read[0].Dead.DiedAt.Before(first.read[0].Dead.DiedAt)) {
			first = l
		}
	}
	return first
}
