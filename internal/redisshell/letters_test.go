package redisshell_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// parts are the minutes of what is in each part of a topic: of deaths, or of anything else.
type parts [][]int

// browser looks at the parts as a driver does: a place is how many were listed.
func (p parts) browser() *redisshell.Browser[[]int] {
	look := func(_ context.Context, asked [][]int, after []string, most, scan int) ([]redisconn.Reply, error) {
		replies := make([]redisconn.Reply, len(asked))
		for i, part := range asked {
			begin, _ := strconv.Atoi(after[i])
			end, next := min(len(part), begin+most, begin+scan), ""
			if end < len(part) {
				next = strconv.Itoa(end)
			}
			views := []any{}
			for n := begin; n < end; n++ {
				v := make([]any, 14)
				v[0], v[13] = strconv.Itoa(part[n]), strconv.Itoa(n+1)
				views = append(views, v)
			}
			replies[i] = redisconn.Reply{"ok", views, strconv.Itoa(end - begin), next}
		}
		return replies, nil
	}
	entry := func(_ []int, view redisconn.Reply) driver.Entry {
		return driver.Entry{Dead: &driver.DeadLetter{DiedAt: time.Unix(60*view.Number(0), 0)}}
	}
	return &redisshell.Browser[[]int]{Parts: p, Look: look, Entry: entry}
}

// pages lists everything in pages of so many, and returns the minutes.
func (p parts) pages(t *testing.T, state driver.State, limit int) (minutes []int) {
	t.Helper()
	q := driver.Query{Topic: "jobs", Group: "g", State: state, Limit: limit}
	for {
		resolved, err := q.Resolve(driver.Capabilities{})
		if err != nil {
			t.Fatal(err)
		}
		page, err := p.browser().Page(t.Context(), resolved, driver.Capabilities{})
		if err != nil || len(page.Entries) > limit {
			t.Fatalf("%d entries, %v", len(page.Entries), err)
		}
		for _, e := range page.Entries {
			minutes = append(minutes, int(e.Dead.DiedAt.Unix()/60))
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return minutes
		}
	}
}

// Whatever the size of a page, everything is listed once: letters in the order of deaths over all parts, all else one
// part after the other.
func TestPages(t *testing.T) {
	p := parts{{1, 5, 6, 20, 21}, {}, {2, 3, 4, 22}, {7, 8, 9, 10, 11, 12, 13, 14}}
	listed := slices.Concat(p...)
	for limit := 1; limit <= len(listed)+1; limit++ {
		if got, want := p.pages(t, driver.StateDead, limit), slices.Sorted(slices.Values(listed)); !slices.Equal(got, want) {
			t.Errorf("letters in pages of %d: %v, want %v", limit, got, want)
		}
		if got := p.pages(t, driver.StateReady, limit); !slices.Equal(got, listed) {
			t.Errorf("pages of %d: %v, want %v", limit, got, listed)
		}
	}
}

func TestForeignCursors(t *testing.T) {
	b := parts{{1}, {2}}.browser()
	for state, cursors := range map[driver.State][]string{
		driver.StateDead:  {"x", "d", "d1", "d1,2,3", "d1,%zz", "1,2"},
		driver.StateReady: {"x", "2:", "-1:5", "d1,2"},
	} {
		for _, cursor := range cursors {
			q := driver.Query{State: state, Limit: 1, MaxScan: 1, Cursor: cursor}
			if _, err := b.Page(t.Context(), q, driver.Capabilities{}); !errors.Is(err, driver.ErrInvalid) {
				t.Errorf("%s: %q: %v", state, cursor, err)
			}
		}
	}
	failed := fmt.Errorf("the server is away: %w", driver.ErrNotApplied)
	b.Look = func(context.Context, [][]int, []string, int, int) ([]redisconn.Reply, error) { return nil, failed }
	for _, state := range []driver.State{driver.StateDead, driver.StateReady} {
		q := driver.Query{State: state, Limit: 1, MaxScan: 1}
		if _, err := b.Page(t.Context(), q, driver.Capabilities{}); !errors.Is(err, failed) {
			t.Errorf("%s: %v", state, err)
		}
	}
}
