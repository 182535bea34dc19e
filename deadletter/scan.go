package deadletter

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// scan goes through the letters of a selection: topic by topic and group by group in order of their names, and in each
// in the order of dying.
type scan struct {
	queue  *Queue
	sel    Selection
	places []place
	at     cursor
}

// place is one list of letters.
type place struct{ topic, group string }

// cursor is where a scan stands: in which place, where in it, and what was seen before.
type cursor struct {
	Topic   string `json:"t"`
	Group   string `json:"g,omitempty"`
	Inside  string `json:"c,omitempty"` // the driver's; empty: at the beginning of the place
	Scanned int    `json:"n,omitempty"`
	Total   int64  `json:"of,omitempty"` // when the scan began
}

func (c cursor) encode() string {
	b, _ := json.Marshal(c) // strings and numbers cannot fail
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeCursor(s string) (c cursor, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Topic == "" || c.Scanned < 0 || c.Total < 0 {
		return cursor{}, errCursor(err)
	}
	return c, nil
}

func errCursor(cause error) error {
	return driver.NewError(driver.ErrInvalid, "the cursor is not one of this listing of letters",
		"use the one that an earlier page of it gave, whole, or none", cause)
}

// fits reports whether a listing of the selection can have got to the cursor. Another one would end there, as if
// nothing were left.
func (c cursor) fits(sel Selection) bool {
	group := sel.State == driver.StateInvalid || sel.Group == "" || sel.Group == c.Group
	return group && (sel.Topic == "" || sel.Topic == c.Topic)
}

// newScan begins at the cursor, or without one at the beginning.
func (q *Queue) newScan(ctx context.Context, sel Selection, at string) (*scan, error) {
	if err := sel.check(); err != nil {
		return nil, err
	}
	s := &scan{queue: q, sel: sel}
	var err error
	if at != "" {
		if s.at, err = decodeCursor(at); err != nil {
			return nil, err
		}
		if !s.at.fits(sel) {
			return nil, errCursor(nil)
		}
	}
	if err := s.findPlaces(ctx, at == ""); err != nil {
		return nil, err
	}
	if at != "" {
		s.skipTo(s.at)
	}
	return s, nil
}

// findPlaces finds the lists of the selection, and how many letters they have.
func (s *scan) findPlaces(ctx context.Context, count bool) error {
	topics := []string{s.sel.Topic}
	if s.sel.Topic == "" {
		infos, err := s.queue.driver.Topics(ctx)
		if err != nil {
			return err
		}
		topics = topics[:0]
		for _, info := range infos {
			topics = append(topics, info.Topic)
			if !count {
				s.addPlaces(info.Topic, info.Groups)
			}
		}
		if !count {
			return nil
		}
	}
	for _, topic := range topics {
		st, err := s.queue.driver.Stats(ctx, topic)
		if s.vanished(err) {
			continue
		}
		if err != nil {
			return err
		}
		names := make([]string, len(st.Groups))
		for i, g := range st.Groups {
			names[i] = g.Group
			if count && s.sel.State == driver.StateDead && (s.sel.Group == "" || s.sel.Group == g.Group) {
				s.at.Total += g.Dead
			}
		}
		if count && s.sel.State == driver.StateInvalid {
			s.at.Total += st.Invalid
		}
		if s.sel.Topic != "" && s.sel.Group != "" && !slices.Contains(names, s.sel.Group) {
			return driver.NewError(driver.ErrNotFound, "topic "+topic+" has no group "+s.sel.Group,
				"see its groups with 'ferry group ls'", nil)
		}
		s.addPlaces(topic, names)
	}
	return nil
}

func (s *scan) addPlaces(topic string, groups []string) {
	if s.sel.State == driver.StateInvalid {
		s.places = append(s.places, place{topic: topic})
		return
	}
	for _, g := range groups {
		if s.sel.Group == "" || s.sel.Group == g {
			s.places = append(s.places, place{topic, g})
		}
	}
}

// skipTo drops the places before the cursor. One that is gone meanwhile continues at the next.
func (s *scan) skipTo(c cursor) {
	s.places = slices.DeleteFunc(s.places, func(p place) bool {
		order := strings.Compare(p.topic, c.Topic)
		return order < 0 || order == 0 && p.group < c.Group
	})
	if len(s.places) == 0 || s.places[0] != (place{c.Topic, c.Group}) {
		s.at.Inside = ""
	}
}

// vanished reports whether err says that a topic or group was deleted while a scan over all goes on.
func (s *scan) vanished(err error) bool {
	return s.sel.Topic == "" && errors.Is(err, driver.ErrNotFound)
}

// read returns up to n letters of the current place without going on. Done goes on to behind them.
func (s *scan) read(ctx context.Context, n int) (p driver.Page, err error) {
	at := s.places[0]
	p, err = s.queue.driver.Browse(ctx,
		driver.Query{Topic: at.topic, Group: at.group, State: s.sel.State, Cursor: s.at.Inside, Limit: n, MaxScan: n})
	if s.vanished(err) {
		return driver.Page{}, nil
	}
	return p, err
}

func (s *scan) done(p driver.Page) {
	s.at.Scanned += p.Scanned
	if s.at.Inside = p.Next; p.Next == "" {
		s.places = s.places[1:]
	}
}

func (s *scan) ended() bool { return len(s.places) == 0 }

// next is the cursor that continues here; empty at the end.
func (s *scan) next() string {
	if s.ended() {
		return ""
	}
	c := s.at
	c.Topic, c.Group = s.places[0].topic, s.places[0].group
	return c.encode()
}

// pagePart is how many letters are read in one go.
const pagePart = 256

// each calls visit with every letter that matches, a part at a time, until it returns an error or false.
func (s *scan) each(ctx context.Context, visit func(l Letter, err error) (bool, error)) error {
	for !s.ended() {
		if err := ctx.Err(); err != nil {
			return err
		}
		from := s.places[0].topic
		p, err := s.read(ctx, pagePart)
		if err != nil {
			return err
		}
		for _, e := range p.Entries {
			l := s.queue.letter(ctx, from, e)
			yes, err := s.sel.Where.Match(ctx, l)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if !yes && err == nil {
				continue
			}
			if more, err := visit(l, err); err != nil || !more {
				return err
			}
		}
		s.done(p)
	}
	return nil
}
