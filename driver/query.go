package driver

import (
	"fmt"
	"hash/crc32"
	"strings"
)

// Bounds of listings.
const (
	DefaultLimit   = 100
	MaxLimit       = 1000
	DefaultMaxScan = 10_000
	MaxMaxScan     = 1_000_000

	maxCursor = 64 << 10 // bytes: a driver may note a place in each partition
)

// Resolve fills in the defaults of q for a driver with capabilities c, and says what is wrong with it. The cursor it
// returns is what Continue was given, so that a driver reads only what it wrote itself, for this very query. Every
// driver calls it first in Browse.
func (q Query) Resolve(c Capabilities) (Query, error) {
	if err := CheckScope(q.Topic, q.Group); err != nil {
		return q, err
	}
	switch q.State {
	case StateDelayed, StateHeld, StateInvalid:
		q.Group = "" // they belong to the topic
	case StateReady, StateInflight, StateWaiting, StateDead, StateDone:
		if q.Group == "" {
			return q, NewError(ErrInvalid, fmt.Sprintf("state %s belongs to groups, and none is named", q.State),
				"set Query.Group", nil)
		}
	default:
		return q, NewError(ErrInvalid, fmt.Sprintf("state %s does not exist", quote(string(q.State))),
			"use one of the states of package driver", nil)
	}
	var err error
	if q.Limit, err = limited("Limit", q.Limit, DefaultLimit, MaxLimit); err != nil {
		return q, err
	}
	if q.MaxScan, err = limited("MaxScan", q.MaxScan, DefaultMaxScan, MaxMaxScan); err != nil {
		return q, err
	}
	q.Cursor, err = openCursor(q.Cursor, q.listing(c))
	return q, err
}

// Continue returns the cursor of the page that goes on at a place, in the driver's own words. None at the end: "" stays
// "".
func (q Query) Continue(c Capabilities, at string) string { return sealCursor(at, q.listing(c)) }

func (q Query) listing(c Capabilities) string {
	return strings.Join([]string{c.Driver, q.Topic, q.Group, string(q.State)}, "/")
}

// Resolve is that of a Query.
func (q PendingQuery) Resolve(c Capabilities) (PendingQuery, error) {
	if err := CheckGroup(q.Topic, q.Group); err != nil {
		return q, err
	}
	if err := checkText("instance name", q.Instance, MaxNameLen); err != nil {
		return q, err
	}
	var err error
	if q.Limit, err = limited("Limit", q.Limit, DefaultLimit, MaxLimit); err != nil {
		return q, err
	}
	q.Cursor, err = openCursor(q.Cursor, q.listing(c))
	return q, err
}

// Continue is that of a Query.
func (q PendingQuery) Continue(c Capabilities, at string) string {
	return sealCursor(at, q.listing(c))
}

func (q PendingQuery) listing(c Capabilities) string {
	return strings.Join([]string{c.Driver, q.Topic, q.Group, "pending", q.Instance}, "/")
}

// Resolve fills in the default of q, and says what is wrong with it. Whether the topic has the partition is the
// driver's to say.
func (q RangeQuery) Resolve() (RangeQuery, error) {
	if err := CheckName("topic", q.Topic); err != nil {
		return q, err
	}
	if q.Partition < 0 {
		return q, NewError(ErrInvalid, fmt.Sprintf("there is no partition %d", q.Partition), "partitions count from 0", nil)
	}
	if err := checkSpan(q.From, q.To); err != nil {
		return q, err
	}
	var err error
	q.Limit, err = limited("Limit", q.Limit, DefaultLimit, MaxLimit)
	return q, err
}

// limited returns n, or what it defaults to, or the most there is.
func limited(what string, n, otherwise, most int) (int, error) {
	if n < 0 {
		return n, NewError(ErrInvalid, fmt.Sprintf("%s %d is negative", what, n), "leave it zero for the default", nil)
	}
	if n == 0 {
		n = otherwise
	}
	return min(n, most), nil
}

// sealCursor marks a place as one of a listing. The mark finds mistakes; it keeps nobody out.
func sealCursor(at, listing string) string {
	if at == "" {
		return ""
	}
	return fmt.Sprintf("%08x.%s", crc32.ChecksumIEEE([]byte(listing+"/"+at)), at)
}

// openCursor returns the place in a cursor of this listing.
func openCursor(cursor, listing string) (at string, err error) {
	if cursor == "" {
		return "", nil
	}
	_, at, _ = strings.Cut(cursor, ".")
	if len(cursor) > maxCursor || at == "" || cursor != sealCursor(at, listing) {
		return "", NewError(ErrInvalid, fmt.Sprintf("cursor %s is not one of this listing", quote(cursor)),
			"use the cursor that an earlier page of the same query ended with, or none", nil)
	}
	return at, nil
}
