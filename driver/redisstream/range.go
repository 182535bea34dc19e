package redisstream

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
)

// Range returns a page of what is in one partition, whatever became of it, as long as it is in the stream.
func (d *Driver) Range(ctx context.Context, q driver.RangeQuery) (driver.RangePage, error) {
	page := driver.RangePage{}
	q, err := q.Resolve()
	t, err := d.topics.Existing(ctx, q.Topic, err)
	if err != nil {
		return page, err
	}
	if int(q.Partition) >= len(t.Parts) {
		return page, driver.NewError(driver.ErrInvalid, fmt.Sprintf("topic %q has no partition %d", q.Topic, q.Partition),
			fmt.Sprintf("use 0 to %d", len(t.Parts)-1), nil)
	}
	p := t.Parts[q.Partition]
	from, to := positionText(placeIn(q.From, p)), positionText(placeIn(q.To, p))
	reply, err := p.consult(ctx, &d.scripts.span, "", from, to, q.Limit+1)
	if err != nil {
		return page, err
	}
	for i, x := range reply.List(1) {
		v := redisconn.ReplyOf(x)
		if i == q.Limit {
			page.Next = p.ref(v.Text(0))
			break
		}
		page.Entries = append(page.Entries, p.spanned(v))
	}
	return page, nil
}

// spanned makes an entry of what lua/span.lua tells.
func (p *partition) spanned(v redisconn.Reply) driver.Entry {
	e := driver.Entry{Ref: p.ref(v.Text(0))}
	m, _, err := decode(v.List(2), v.Text(0))
	if err != nil {
		e.State, e.Problem, e.Raw = driver.StateInvalid, err.Error(), rawOf(v.Texts(2))
		return e
	}
	m.Topic, m.PublishedAt = p.t.Name, redisconn.Wall(v.Text(1))
	e.Message = m
	return e
}
