package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
)

// pageSize is the most entries asked for at once.
const pageSize = 1000

// scope is what a listing covers: the messages in one state, of one group or topic or of all.
type scope struct {
	topic, group string
	state        driver.State
	cursor       string
	limit        int
	maxScan      int // look at no more than so many; 0: all
}

func (s *scope) flags(f *pflag.FlagSet) {
	groupFlag(f, &s.group, "only this group (default: every group)")
	s.pageFlags(f)
}

func (s *scope) pageFlags(f *pflag.FlagSet) {
	f.IntVar(&s.limit, "limit", 100, "at most this many; 0: all")
	f.StringVar(&s.cursor, "cursor", "", "continue where an earlier listing stopped: it says so on standard error")
	onlyOnCommandLine(f, "cursor")
}

func (s scope) check() error {
	if s.limit < 0 {
		return usage(fmt.Sprintf("--limit %d is negative", s.limit), "use 0 for all")
	}
	return checkGroup(s.group)
}

// ofTopic tells of a state whether it belongs to the topic and not to its groups.
func ofTopic(s driver.State) bool {
	return s == driver.StateDelayed || s == driver.StateHeld || s == driver.StateInvalid
}

// queries returns one query for each topic or group of the scope.
func (s scope) queries(ctx context.Context, d driver.Inspector) ([]driver.Query, error) {
	infos, err := s.topics(ctx, d)
	if err != nil {
		return nil, err
	}
	var all []driver.Query
	for _, info := range infos {
		groups := info.Groups
		switch {
		case ofTopic(s.state):
			groups = []string{""}
		case s.group != "":
			groups = []string{s.group}
		}
		for _, g := range groups {
			all = append(all, driver.Query{Topic: info.Topic, Group: g, State: s.state, Cursor: s.cursor})
		}
	}
	if s.cursor != "" && len(all) > 1 {
		return nil, usage("a cursor belongs to one topic and one group", "name both: TOPIC and --group")
	}
	return all, nil
}

// topics returns the topics of the scope with their groups.
func (s scope) topics(ctx context.Context, d driver.Inspector) ([]driver.TopicInfo, error) {
	if s.topic == "" {
		return d.Topics(ctx)
	}
	st, err := d.Stats(ctx, s.topic)
	if err != nil {
		return nil, err
	}
	return []driver.TopicInfo{{Topic: s.topic, Groups: viewTopic(st).names()}}, nil
}

// browse shows the messages of the scope to visit, which reports whether it counts towards the limit, and notes how to
// go on when there is more.
func (s scope) browse(ctx context.Context, ss session, visit func(q driver.Query, e driver.Entry) (bool, error)) error {
	queries, err := s.queries(ctx, ss.driver)
	if err != nil {
		return err
	}
	left, looked := s.limit, 0
	for i, q := range queries {
		next, err := s.browseOne(ctx, ss.driver, q, &left, &looked, visit)
		if s.topic == "" && errors.Is(err, driver.ErrNotFound) { // deleted meanwhile, or without this group
			continue
		}
		if err != nil {
			return err
		}
		if s.full(left, looked) && (next != "" || i < len(queries)-1) {
			if s.maxScan > 0 {
				ss.notef("looked at %d", looked)
			}
			ss.noteMore(q, next)
			return nil
		}
	}
	return nil
}

// full reports whether enough was shown or looked at.
func (s scope) full(left, looked int) bool {
	return s.limit > 0 && left == 0 || s.maxScan > 0 && looked >= s.maxScan
}

// page is how many entries to ask for next. Where some are left out, more are asked for than may be shown.
func (s scope) page(left, looked int) int {
	switch {
	case s.maxScan > 0:
		return min(pageSize, s.maxScan-looked)
	case s.limit > 0:
		return min(pageSize, left)
	}
	return pageSize
}

func (s scope) browseOne(ctx context.Context, d driver.Inspector, q driver.Query, left, looked *int,
	visit func(driver.Query, driver.Entry) (bool, error)) (next string, err error) {
	for {
		q.Limit = s.page(*left, *looked)
		page, err := d.Browse(ctx, q)
		if err != nil {
			return "", err
		}
		for i, e := range page.Entries {
			counts, err := visit(q, e)
			if err != nil {
				return "", err
			}
			*looked++
			if counts && s.limit > 0 {
				*left--
			}
			if s.full(*left, *looked) && i < len(page.Entries)-1 { // the place behind this one is the end of a shorter page
				q.Limit = i + 1
				page, err = d.Browse(ctx, q)
				return page.Next, err
			}
		}
		if q.Cursor = page.Next; page.Next == "" || s.full(*left, *looked) {
			return page.Next, ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
}

// noteMore tells how to see what comes behind the last row.
func (r *remote) noteMore(q driver.Query, next string) {
	where := q.Topic
	if q.Group != "" {
		where += " --group " + q.Group
	}
	if next == "" {
		r.notef("there may be more: %s is complete, the others are not; raise --limit or name a topic and --group", where)
		return
	}
	r.notef("there may be more: go on with %s --cursor %s", where, next)
}
