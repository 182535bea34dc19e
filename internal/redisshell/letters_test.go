package redisshell_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// parts are the minutes of the deaths in each part of a topic.
type parts [][]int

// read reads up to most letters behind the place of a part, as a driver does.
func (p parts) read(l *redisshell.Letters[int], most int) {
	begin, _ := strconv.Atoi(l.After) // how many were listed
	all := p[l.Part]
	for i := begin; i < min(len(all), begin+most); i++ {
		e := driver.Entry{Dead: &driver.DeadLetter{DiedAt: time.Unix(60*int64(all[i]), 0)}}
		l.Add(e, strconv.Itoa(i+1))
	}
	l.More = begin+most < len(all)
}

// pages lists everything in pages of so many, and returns the minutes.
func (p parts) pages(t *testing.T, limit int) (minutes []int) {
	t.Helper()
	indexes := make([]int, len(p))
	for i := range indexes {
		indexes[i] = i
	}
	for cursor := ""; ; {
		all, err := redisshell.LettersAfter(cursor, indexes)
		if err != nil {
			t.Fatal(err)
		}
		q := driver.Query{Limit: limit, MaxScan: 1000}
		page, next, err := redisshell.PageOfLetters(q, all, func() error {
			for _, l := range all {
				for l.Wanting() {
					p.read(l, redisshell.AtOnce(q, len(p)))
				}
			}
			return nil
		})
		if err != nil || len(page.Entries) > limit {
			t.Fatalf("%d entries, %v", len(page.Entries), err)
		}
		for _, e := range page.Entries {
			minutes = append(minutes, int(e.Dead.DiedAt.Unix()/60))
		}
		if next == "" {
			return minutes
		}
		cursor = next
	}
}

// Whatever the size of a page, every letter is listed once, and the oldest first, over all parts.
func TestLettersInOrderOfDeath(t *testing.T) {
	p := parts{{1, 5, 6, 20, 21}, {}, {2, 3, 4, 22}, {7, 8, 9, 10, 11, 12, 13, 14}}
	want := slices.Sorted(slices.Values(slices.Concat(p...)))
	for limit := 1; limit <= len(want)+1; limit++ {
		if got := p.pages(t, limit); !slices.Equal(got, want) {
			t.Errorf("pages of %d: %v, want %v", limit, got, want)
		}
	}
}

func TestForeignCursors(t *testing.T) {
	for _, cursor := range []string{"x", "d", "d1", "d1,2,3", "d1,%zz", "1,2"} {
		if _, err := redisshell.LettersAfter(cursor, []int{0, 1}); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%q: %v", cursor, err)
		}
	}
	failed := fmt.Errorf("the server is away: %w", driver.ErrNotApplied)
	all, _ := redisshell.LettersAfter("", []int{0})
	if _, _, err := redisshell.PageOfLetters(driver.Query{Limit: 1, MaxScan: 1}, all, func() error {
		return failed
	}); !errors.Is(err, failed) {
		t.Error(err)
	}
}
