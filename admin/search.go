package admin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
)

// Bounds of a page of a search.
const (
	searchScan = 10_000                // entries that the driver looks at
	searchTime = 50 * time.Millisecond // about, so that a rare match does not make a page slow
	searchPart = 256                   // messages read in one go
	searchLook = 2_000                 // entries that the driver looks at for them
)

// search goes through the messages of a topic, one list after the other: those of the topic, then those of each group.
type search struct {
	broker *ferry.Broker
	browse func(context.Context, driver.Query) (driver.Page, error)
	topic  string
	key    string
	where  *deadletter.Filter
	limit  int
	lists  []lane
	at     searchCursor
	looked int // entries that the driver looked at, for this page

	found  []driver.Entry
	faulty int
	fault  error
}

// lane is one list of messages: of a group, or of the topic.
type lane struct {
	Group string       `json:"g,omitempty"`
	State driver.State `json:"s"`
}

// searchCursor is where a search stands: in which list, where in it, and what was seen before.
type searchCursor struct {
	lane
	Inside  string `json:"c,omitempty"` // the driver's; empty: at the beginning of the list
	Scanned int    `json:"n,omitempty"`
	Total   int64  `json:"of,omitempty"`
}

func (a *API) newSearch(ctx context.Context, in *listMessages, where *deadletter.Filter) (*search, error) {
	s := &search{broker: a.broker, browse: a.browse, topic: in.Topic, key: in.Key, where: where, limit: in.Limit}
	stats, err := a.stats(ctx, in.Topic)
	if err != nil {
		return nil, err
	}
	s.find(stats, in.Group, driver.State(in.State))
	if len(s.lists) == 0 {
		return nil, driver.NewError(driver.ErrNotFound, "topic "+in.Topic+" has no such group",
			"see GET /api/v1/topics/"+in.Topic, nil)
	}
	if in.Cursor != "" {
		return s, s.goOn(in.Cursor)
	}
	return s, nil
}

// find finds the lists to look at, and how many messages they have.
func (s *search) find(stats driver.TopicStats, group string, state driver.State) {
	add := func(l lane, n int64) {
		if (state == "" || state == l.State) && (group == "" || group == l.Group) {
			s.lists, s.at.Total = append(s.lists, l), s.at.Total+n
		}
	}
	for _, g := range stats.Groups {
		add(lane{g.Group, driver.StateReady}, g.Ready)
		add(lane{g.Group, driver.StateInflight}, g.Inflight)
		add(lane{g.Group, driver.StateWaiting}, g.Waiting)
		add(lane{g.Group, driver.StateDead}, g.Dead)
		add(lane{g.Group, driver.StateDone}, 0)
	}
	add(lane{"", driver.StateDelayed}, stats.Delayed)
	add(lane{"", driver.StateHeld}, stats.Held)
	add(lane{"", driver.StateInvalid}, stats.Invalid)
}

// goOn continues where an earlier page ended.
func (s *search) goOn(cursor string) error {
	var at searchCursor
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	i := slices.Index(s.lists, at.lane)
	if err != nil || i < 0 || at.Scanned < 0 || at.Total < 0 {
		return driver.NewError(driver.ErrInvalid, "the cursor is not one of this listing",
			"use next of an earlier page of the same query, or none", nil)
	}
	s.lists, s.at = s.lists[i:], at
	return nil
}

// next is the cursor that continues here; empty at the end.
func (s *search) next() string {
	if len(s.lists) == 0 {
		return ""
	}
	s.at.lane = s.lists[0]
	b, _ := json.Marshal(s.at) // texts and numbers cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

// run looks until the page is full, or a bound is reached.
func (s *search) run(ctx context.Context) error {
	begin := time.Now()
	for len(s.lists) > 0 && len(s.found) < s.limit && s.looked < searchScan && time.Since(begin) < searchTime {
		if err := s.part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// part looks at a part of the first list. When the page is full in the middle of it, the part is read again as short as
// that, because only the driver knows the cursor there.
func (s *search) part(ctx context.Context) error {
	size := searchPart
	if s.where == nil && s.key == "" {
		size = min(size, s.limit-len(s.found))
	}
	for {
		l := s.lists[0]
		p, err := s.browse(ctx, driver.Query{Topic: s.topic, Group: l.Group, State: l.State, Cursor: s.at.Inside, Limit: size,
			MaxScan: searchLook})
		if err != nil {
			return err
		}
		got, err := s.pick(ctx, p.Entries)
		if err != nil {
			return err
		}
		if got.used < len(p.Entries) {
			size = got.used
			continue
		}
		s.add(got)
		s.at.Scanned, s.looked = s.at.Scanned+len(p.Entries), s.looked+p.Scanned
		if s.at.Inside = p.Next; p.Next == "" {
			s.lists = s.lists[1:]
		}
		return nil
	}
}

// picked is what a part has of what is looked for.
type picked struct {
	entries []driver.Entry
	used    int // entries looked at
	faulty  int // of which the filter could not be asked
	fault   error
}

func (s *search) add(p picked) {
	if s.found == nil {
		s.found = slices.Clip(p.entries) // most pages are one part, which others may have, too
	} else {
		s.found = append(s.found, p.entries...)
	}
	s.faulty += p.faulty
	if s.fault == nil {
		s.fault = p.fault
	}
}

// pick returns what matches, as far as there is room for it. The error is that of ctx.
func (s *search) pick(ctx context.Context, entries []driver.Entry) (p picked, err error) {
	if s.where == nil && s.key == "" {
		return picked{entries: entries, used: len(entries)}, nil // part asked for as many as there is room for
	}
	for i, e := range entries {
		if s.key != "" && (e.Message == nil || e.Key != s.key) {
			continue
		}
		yes, err := s.matches(ctx, e)
		if ctx.Err() != nil {
			return p, ctx.Err()
		}
		if err != nil {
			if p.faulty++; p.fault == nil {
				p.fault = err
			}
		}
		if !yes {
			continue
		}
		if p.entries = append(p.entries, e); len(p.entries)+len(s.found) == s.limit {
			p.used = i + 1
			return p, nil
		}
	}
	p.used = len(entries)
	return p, nil
}

// matches asks the filter, of the body as it was published.
func (s *search) matches(ctx context.Context, e driver.Entry) (bool, error) {
	if s.where.Reads("body") || s.where.Reads("json") {
		e, _ = s.broker.UndoEntry(ctx, e) // of what cannot be undone it is asked as it is stored
	}
	return s.where.Match(ctx, deadletter.Letter{Entry: e, From: s.topic})
}
