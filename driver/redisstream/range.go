package redisstream

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// validID is what the id of an entry looks like.
var validID = regexp.MustCompile(`^\d{1,20}(-\d{1,20})?$`)

// RangeQuery selects what Range returns.
type RangeQuery struct {
	Topic     string
	Partition int
	// From and To are ids of entries, as XRANGE takes them. Default to the oldest and the newest.
	From, To string
	// Limit is the most messages returned. Defaults to 100, at most 1000.
	Limit int
}

// Range returns messages of one partition between two entries, whatever became of them, as long as they are in the stream. Of an entry that
// cannot be decoded it has the bytes.
func (d *Driver) Range(ctx context.Context, q RangeQuery) ([]driver.Entry, error) {
	t, err := d.existing(ctx, q.Topic)
	if err != nil {
		return nil, err
	}
	if q.Partition < 0 || q.Partition >= len(t.parts) {
		return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("topic %q has no partition %d", q.Topic, q.Partition), fmt.Sprintf("use 0 to %d", len(t.parts)-1), nil)
	}
	for _, id := range []string{q.From, q.To} {
		if id != "" && !validID.MatchString(strings.TrimPrefix(id, "(")) {
			return nil, driver.NewError(driver.ErrInvalid, fmt.Sprintf("%.40q is not the id of an entry", id), "it looks like 1700000000000-0, or is a time in milliseconds", nil)
		}
	}
	p := t.parts[q.Partition]
	one := &topic{name: t.name, parts: []*partition{p}}
	limit := min(cmp.Or(max(q.Limit, 0), 100), 1000)
	replies, err := d.each(ctx, one, &d.scripts.span, "", cmp.Or(q.From, "-"), cmp.Or(q.To, "+"), strconv.Itoa(limit))
	if err != nil {
		return nil, err
	}
	var entries []driver.Entry
	for _, x := range list(replies[0], 1) {
		v, _ := x.([]any)
		e := driver.Entry{Ref: p.ref(text(v, 0))}
		if m, _, err := decode(list(v, 2), text(v, 0)); err != nil {
			e.State, e.Problem, e.Raw = driver.StateInvalid, err.Error(), rawOf(texts(v, 2))
		} else {
			m.Topic, m.PublishedAt = t.name, wall(text(v, 1))
			e.Message = m
		}
		entries = append(entries, e)
	}
	return entries, nil
}
