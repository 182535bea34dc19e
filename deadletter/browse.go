package deadletter

import (
	"context"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Query asks for a page of letters.
type Query struct {
	Selection
	// Cursor continues an earlier page: its Next. Empty: from the beginning.
	Cursor string
	// Limit is the most letters returned. Defaults to 100, at most 1000.
	Limit int
	// MaxScan is the most letters looked at. Defaults to 10,000.
	MaxScan int
	// MaxTime ends the look after about this long, so that a rare match does not make a page slow. Defaults to 15 ms.
	MaxTime time.Duration
}

func (q *Query) check() error {
	if q.Limit < 0 || q.MaxScan < 0 || q.MaxTime < 0 {
		return driver.NewError(driver.ErrInvalid, "Limit, MaxScan or MaxTime is negative",
			"leave it zero for the default", nil)
	}
	if len(q.Only) > 0 {
		return driver.NewError(driver.ErrInvalid, "single letters are not browsed", "use Queue.Get", nil)
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	q.Limit = min(q.Limit, 1000)
	if q.MaxScan == 0 {
		q.MaxScan = 10_000
	}
	if q.MaxTime == 0 {
		q.MaxTime = 15 * time.Millisecond
	}
	return nil
}

// Page is some letters. It may be empty although there is more.
type Page struct {
	Letters []Letter
	// Scanned were looked at since the first page, of about Total that there were then.
	Scanned int
	Total   int64
	// Faulty could not be asked, on this page, and Fault says why of the first.
	Faulty int
	Fault  error
	// Next continues after this page; empty at the end.
	Next string
}

// Browse returns letters, oldest death first within each group, and a cursor for the rest. Its work is bounded.
func (q *Queue) Browse(ctx context.Context, query Query) (Page, error) {
	if err := query.check(); err != nil {
		return Page{}, err
	}
	s, err := q.newScan(ctx, query.Selection, query.Cursor)
	if err != nil {
		return Page{}, err
	}
	var page Page
	first, begin := s.at.Scanned, time.Now()
	for !s.ended() && len(page.Letters) < query.Limit && s.at.Scanned-first < query.MaxScan &&
		time.Since(begin) < query.MaxTime {
		if err := s.fill(ctx, &page, query.Limit, query.MaxScan-(s.at.Scanned-first)); err != nil {
			return Page{}, err
		}
	}
	page.Scanned, page.Total, page.Next = s.at.Scanned, s.at.Total, s.next()
	return page, nil
}

// fill adds the letters of one part to the page. When the page is full in the middle of it, the part is read again as
// short as that, because only the driver knows the cursor there.
func (s *scan) fill(ctx context.Context, page *Page, limit, scan int) error {
	room := limit - len(page.Letters)
	size := min(pagePart, scan)
	if s.sel.Where == nil {
		size = min(size, room)
	}
	for {
		from := s.places[0].topic
		p, err := s.read(ctx, size)
		if err != nil {
			return err
		}
		got, used, err := s.pick(ctx, p.Entries, from, room)
		if err != nil {
			return err
		}
		if used < len(p.Entries) && size > room {
			size = max(room, min(used, size-1))
			continue
		}
		page.Letters = append(page.Letters, got.Letters...)
		page.Faulty += got.Faulty
		if page.Fault == nil {
			page.Fault = got.Fault
		}
		s.done(p)
		return nil
	}
}

// pick returns up to room of the entries that match, and how many entries it looked at for them. The error is that of
// ctx.
func (s *scan) pick(ctx context.Context, entries []driver.Entry, from string, room int) (got Page,
	used int, err error) {
	for i, e := range entries {
		l := s.queue.letter(ctx, from, e)
		yes, err := s.sel.Where.Match(ctx, l)
		if ctx.Err() != nil {
			return got, i, ctx.Err()
		}
		if err != nil {
			got.Faulty++
			if got.Fault == nil {
				got.Fault = err
			}
		}
		if !yes {
			continue
		}
		if got.Letters = append(got.Letters, l); len(got.Letters) == room {
			return got, i + 1, nil
		}
	}
	return got, len(entries), nil
}
