package kafka

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/consumer"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Browse returns a page of entries in one state, oldest first.
func (d *Driver) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	q, err := q.Resolve(d.caps)
	if err != nil {
		return driver.Page{}, err
	}
	page, err := d.browse(ctx, q)
	page.Next = q.Continue(d.caps, page.Next)
	return page, err
}

func (d *Driver) browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	t, err := d.registry.Existing(ctx, q.Topic)
	if err != nil {
		return driver.Page{}, err
	}
	switch q.State {
	case driver.StateDead:
		if _, err := d.registry.Group(t.Name, q.Group); err != nil {
			return driver.Page{}, err
		}
		x, err := d.registry.DeadLetters(ctx, t)
		if err != nil {
			return driver.Page{}, err
		}
		return x.Browse(ctx, q.Group, q, registry.ReadDead(t))
	case driver.StateDelayed, driver.StateHeld:
		return d.delays.Page(ctx, t.Name, q)
	case driver.StateInvalid:
		return d.invalidPage(ctx, t, q)
	}
	all, err := d.inState(ctx, t, q.Group, q.State)
	if err != nil {
		return driver.Page{}, err
	}
	found, next := behind(q.Cursor, all, min(q.Limit, q.MaxScan), func(f consumer.Found) string { return f.At })
	es, err := d.groups.Whole(ctx, found)
	return driver.Page{Entries: es, Scanned: len(found), Next: next}, err
}

// behind is the page of a listing behind a cursor, in order of places, and the cursor of the next one if there is more.
func behind[E any](cursor string, all []E, most int, at func(E) string) (page []E, next string) {
	all = slices.DeleteFunc(all, func(e E) bool { return at(e) <= cursor })
	slices.SortFunc(all, func(a, b E) int { return cmp.Compare(at(a), at(b)) })
	if len(all) > most {
		all = all[:most]
		next = at(all[most-1])
	}
	return all, next
}

func (d *Driver) inState(ctx context.Context, t *registry.TopicState, group string,
	state driver.State) ([]consumer.Found, error) {
	if state == driver.StateDone {
		_, err := d.registry.Group(t.Name, group)
		return nil, err
	}
	vs, err := d.groups.Look(ctx, t, group)
	if err != nil {
		return nil, err
	}
	defer vs.Close()
	return vs.Entries(func(it *consumer.Item) bool { return it.EntryState() == state }), nil
}

// invalidPage is a page of the broken records of a topic. Groups without consumers are looked through first: whoever
// reads them finds them.
func (d *Driver) invalidPage(ctx context.Context, t *registry.TopicState, q driver.Query) (driver.Page, error) {
	for _, g := range d.registry.GroupsOf(t.Name) {
		vs, err := d.groups.Look(ctx, t, g)
		if err != nil {
			return driver.Page{}, err
		}
		for _, v := range vs.All {
			if v.FoundBad && !v.Busy {
				err = errors.Join(err, v.Finish(ctx))
			}
		}
		vs.Close()
		if err != nil && !errors.Is(err, consumer.ErrTaken) {
			return driver.Page{}, err
		}
	}
	x, err := d.registry.InvalidRows(ctx, t)
	if err != nil {
		return driver.Page{}, err
	}
	return x.Browse(ctx, registry.InvalidList, q, record.InvalidEntry)
}
