package redisshell

import (
	"context"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Browser lists the messages of a topic, of which a script tells in each of its parts.
type Browser[P any] struct {
	Parts []P
	// Look asks parts for messages in the state of the query, each behind a place in it: for so many at most, having
	// looked at so many at most. It returns for each {"ok", views, how many it looked at, the place behind them or "" at
	// the end}. A view of a dead letter has its place as its 14th element.
	Look func(ctx context.Context, parts []P, after []string, most, scan int) ([]redisconn.Reply, error)
	// Entry makes an entry of a view.
	Entry func(part P, view redisconn.Reply) driver.Entry
}

// scanAtOnce bounds how many messages one script looks at.
const scanAtOnce = 1000

// Page returns entries in one state, oldest first: dead letters of all parts together, others one part after the other.
func (b *Browser[P]) Page(ctx context.Context, q driver.Query, c driver.Capabilities) (driver.Page, error) {
	list := b.list
	if q.State == driver.StateDead {
		list = b.listLetters
	}
	page, err := list(ctx, q)
	if err != nil {
		return driver.Page{}, err
	}
	page.Next = q.Continue(c, page.Next)
	return page, nil
}

// list lists one part after the other. A cursor is the number of a part, and a place in it.
func (b *Browser[P]) list(ctx context.Context, q driver.Query) (page driver.Page, err error) {
	number, place, _ := strings.Cut(q.Cursor, ":")
	at, err := strconv.Atoi("0" + number)
	if err != nil || at >= len(b.Parts) {
		return page, errCursor(q.Cursor, err)
	}
	for at < len(b.Parts) {
		replies, err := b.Look(ctx, b.Parts[at:at+1], []string{place}, q.Limit-len(page.Entries),
			min(q.MaxScan-page.Scanned, scanAtOnce))
		if err != nil {
			return page, err
		}
		for _, v := range replies[0].List(1) {
			page.Entries = append(page.Entries, b.Entry(b.Parts[at], redisconn.ReplyOf(v)))
		}
		page.Scanned += int(replies[0].Number(2))
		if place = replies[0].Text(3); place == "" {
			at++
		}
		if at < len(b.Parts) && (len(page.Entries) >= q.Limit || page.Scanned >= q.MaxScan) {
			page.Next = strconv.Itoa(at) + ":" + place
			return page, nil
		}
	}
	return page, nil
}
