package redisshell

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// Letters are the dead letters of one part of a topic, a shard or a partition, that a page has not come to yet. Each
// part has its own in the order of their deaths.
type Letters[P any] struct {
	Part  P
	After string // the place of the last one that was listed
	More  bool   // there may be some behind those that were read

	read []letter
}

// letter is a dead letter and its place among those of its part.
type letter struct {
	driver.Entry
	at string
}

// Add takes in the next one that was read.
func (l *Letters[P]) Add(e driver.Entry, at string) { l.read = append(l.read, letter{e, at}) }

// Wanting reports whether more must be read before it is known which part has the oldest one.
func (l *Letters[P]) Wanting() bool { return l.More && len(l.read) == 0 }

// DeadLetter puts together the dead letter of an entry, of which is known when it died, where, and of what failure.
func DeadLetter(e *driver.Entry, at time.Time, instance, failure string, failed, lost, rounds int) *driver.DeadLetter {
	last := driver.Failure{At: at}
	if fs, err := envelope.DecodeHistory([]byte(failure)); err == nil && len(fs) == 1 {
		last.Reason, last.Error, last.Stack = fs[0].Reason, fs[0].Error, fs[0].Stack
	} else if instance == "" {
		last.Reason, last.Error = driver.ReasonExpired, "expired before it was handled"
	}
	dl := &driver.DeadLetter{Message: e.Message.Clone(), History: slices.Clone(e.History), Attempts: failed,
		Deliveries: lost + 1, Rounds: rounds,
		Origin: driver.Origin{Topic: e.Topic, Group: e.Group, Ref: e.Ref, Instance: instance}}
	dl.Bury(last)
	return dl
}

// deadCursor begins the cursor of a page of dead letters.
const deadCursor = "d"

// LettersAfter begins a page behind a cursor, which has a place in every part.
func LettersAfter[P any](cursor string, parts []P) ([]*Letters[P], error) {
	all, places := make([]*Letters[P], len(parts)), make([]string, len(parts))
	if cursor != "" {
		rest, ours := strings.CutPrefix(cursor, deadCursor)
		if places = strings.Split(rest, ","); !ours || len(places) != len(parts) {
			return nil, ErrCursor(cursor, nil)
		}
	}
	for i, part := range parts {
		at, err := url.QueryUnescape(places[i])
		if err != nil {
			return nil, ErrCursor(cursor, err)
		}
		all[i] = &Letters[P]{Part: part, After: at, More: true}
	}
	return all, nil
}

// ErrCursor refuses a cursor that no page ended with.
func ErrCursor(cursor string, cause error) error {
	return driver.NewError(driver.ErrInvalid, fmt.Sprintf("cursor %.40q is not one of this driver", cursor),
		"use the cursor that an earlier page ended with, or none", cause)
}

// PageOfLetters lists dead letters of all parts, oldest death first, and returns the cursor behind them. What is
// missing is read by read, which leaves no part wanting.
func PageOfLetters[P any](q driver.Query, all []*Letters[P], read func() error) (page driver.Page,
	next string, err error) {
	for len(page.Entries) < q.Limit && page.Scanned < q.MaxScan {
		if err := read(); err != nil {
			return driver.Page{}, "", err
		}
		first := oldest(all)
		if first == nil {
			return page, "", nil
		}
		page.Entries = append(page.Entries, first.read[0].Entry)
		first.After, first.read = first.read[0].at, first.read[1:]
		page.Scanned++
	}
	return page, cursorAfter(all), nil
}

// AtOnce is how many letters of a part are read at once for a page: some more than its share, since deaths are not
// spread evenly.
func AtOnce(q driver.Query, parts int) int { return max(1, min(q.Limit, q.MaxScan, 4+2*q.Limit/parts)) }

// cursorAfter names the place in each part, or nothing at the end.
func cursorAfter[P any](all []*Letters[P]) string {
	places, more := make([]string, len(all)), false
	for i, l := range all {
		places[i] = url.QueryEscape(l.After)
		more = more || l.More || len(l.read) > 0
	}
	if !more {
		return ""
	}
	return deadCursor + strings.Join(places, ",")
}

// oldest returns the part whose next letter died first, or nil at the end.
func oldest[P any](all []*Letters[P]) *Letters[P] {
	var first *Letters[P]
	for _, l := range all {
		if len(l.read) > 0 && (first == nil || l.read[0].Dead.DiedAt.Before(first.read[0].Dead.DiedAt)) {
			first = l
		}
	}
	return first
}
