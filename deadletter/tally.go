package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// By says what letters are grouped by.
type By string

// What letters can be grouped by.
const (
	ByNothing     By = ""
	ByFingerprint By = "fingerprint" // like errors together, for each reason, topic and group
	ByReason      By = "reason"
	ByTopic       By = "topic"
	ByGroup       By = "group" // for each topic
	ByKey         By = "key"
	ByDay         By = "day" // of dying, in UTC
)

// Groupings are all that letters can be grouped by.
var Groupings = []By{ByFingerprint, ByReason, ByTopic, ByGroup, ByKey, ByDay}

// Bucket counts the letters that have something in common. Only what they have in common is set.
type Bucket struct {
	Topic, Group string
	Reason       ferry.Reason
	Fingerprint  string
	Key          string
	Day          string // 2026-01-31

	Count       int
	First, Last time.Time // of dying
	Bytes       int64
}

// TallyQuery asks for counts. Limit is not used.
type TallyQuery struct {
	Query
	By By
	// MaxBuckets bounds the kinds that are told apart; the rest is counted in Others. Defaults to 1000.
	MaxBuckets int
}

// Tally is how many letters there are, of which kind. Add puts the answers of several calls together.
type Tally struct {
	Matched int
	Buckets []Bucket // the largest first
	Others  int
	Faulty  int
	Scanned int
	Total   int64
	Next    string // continues; empty at the end
}

// Tally counts letters, in the same bounded steps as Browse.
func (q *Queue) Tally(ctx context.Context, query TallyQuery) (Tally, error) {
	if query.By != ByNothing && !slices.Contains(Groupings, query.By) {
		return Tally{}, driver.NewError(driver.ErrInvalid, fmt.Sprintf("letters cannot be grouped by %q", string(query.By)),
			"use "+groupings(), nil)
	}
	if err := query.check(); err != nil {
		return Tally{}, err
	}
	s, err := q.newScan(ctx, query.Selection, query.Cursor)
	if err != nil {
		return Tally{}, err
	}
	c := counter{by: query.By, most: cmp.Or(max(query.MaxBuckets, 0), 1000), kinds: map[Bucket]*Bucket{}}
	first, begin := s.at.Scanned, time.Now()
	for !s.ended() && s.at.Scanned-first < query.MaxScan && time.Since(begin) < query.MaxTime {
		from := s.places[0].topic
		p, err := s.read(ctx, min(pagePart, query.MaxScan-(s.at.Scanned-first)))
		if err != nil {
			return Tally{}, err
		}
		got, _, err := s.pick(ctx, p.Entries, from, len(p.Entries)+1)
		if err != nil {
			return Tally{}, err
		}
		c.tally.Faulty += got.Faulty
		for _, l := range got.Letters {
			c.add(l)
		}
		s.done(p)
	}
	t := c.result()
	t.Scanned, t.Total, t.Next = s.at.Scanned, s.at.Total, s.next()
	return t, nil
}

func groupings() string {
	words := make([]string, len(Groupings))
	for i, b := range Groupings {
		words[i] = string(b)
	}
	return strings.Join(words, ", ")
}

// kind is the bucket of a letter, before it is counted.
func (by By) kind(l Letter) Bucket {
	var b Bucket
	switch by {
	case ByFingerprint:
		b.Topic, b.Group = l.From, l.Group
		if l.Dead != nil {
			b.Reason, b.Fingerprint = l.Dead.Reason, l.Dead.Fingerprint
		} else {
			b.Fingerprint = driver.Fingerprint(l.Problem)
		}
	case ByReason:
		if l.Dead != nil {
			b.Reason = l.Dead.Reason
		}
	case ByTopic:
		b.Topic = l.From
	case ByGroup:
		b.Topic, b.Group = l.From, l.Group
	case ByKey:
		if l.Message != nil {
			b.Key = l.Key
		}
	case ByDay:
		if at := l.diedAt(); !at.IsZero() {
			b.Day = at.UTC().Format(time.DateOnly)
		}
	}
	return b
}

// counter fills a tally.
type counter struct {
	by    By
	most  int
	kinds map[Bucket]*Bucket
	tally Tally
}

func (c *counter) add(l Letter) {
	c.tally.Matched++
	if c.by == ByNothing {
		return
	}
	b := c.by.kind(l)
	b.Count, b.Bytes, b.First, b.Last = 1, int64(l.size()), l.diedAt(), l.diedAt()
	c.merge(b)
}

// merge adds a counted bucket to that of its kind.
func (c *counter) merge(b Bucket) {
	k := b
	k.Count, k.Bytes, k.First, k.Last = 0, 0, time.Time{}, time.Time{}
	have := c.kinds[k]
	switch {
	case have == nil && len(c.kinds) >= c.most:
		c.tally.Others += b.Count
		return
	case have == nil:
		c.kinds[k] = &b
		return
	}
	have.Count += b.Count
	have.Bytes += b.Bytes
	if b.First.Before(have.First) {
		have.First = b.First
	}
	if b.Last.After(have.Last) {
		have.Last = b.Last
	}
}

func (c *counter) result() Tally {
	c.tally.Buckets = nil
	for _, b := range c.kinds {
		c.tally.Buckets = append(c.tally.Buckets, *b)
	}
	slices.SortFunc(c.tally.Buckets, func(a, b Bucket) int {
		return cmp.Or(b.Count-a.Count, cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Day, b.Day))
	})
	return c.tally
}

// Add puts a later answer of the same question to this one.
func (t *Tally) Add(later Tally) {
	c := counter{most: max(1000, len(t.Buckets)), kinds: map[Bucket]*Bucket{}}
	c.tally = Tally{Matched: t.Matched + later.Matched, Others: t.Others + later.Others, Faulty: t.Faulty + later.Faulty}
	for _, b := range append(t.Buckets, later.Buckets...) {
		c.merge(b)
	}
	scanned, total, next := later.Scanned, max(t.Total, later.Total), later.Next
	*t = c.result()
	t.Scanned, t.Total, t.Next = scanned, total, next
}
