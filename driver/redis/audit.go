package redis

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/ferrymq/ferry/driver"
)

// Audit reads all structures of a topic and compares them with each other. What moves meanwhile can look wrong, so a
// problem counts only if a second look finds it too; a repair looks a third time, in the same step in which it mends.
func (d *Driver) Audit(ctx context.Context, name string, fix bool) (driver.AuditReport, error) {
	report := driver.AuditReport{Topic: name}
	t, err := d.topics.Existing(ctx, name)
	if err != nil {
		return report, err
	}
	if err := t.Each(func(s *shard) error { return s.audit(ctx, fix, &report) }); err != nil {
		return report, err
	}
	report.Stats, err = d.Stats(ctx, name)
	for _, text := range report.Stats.Unbalanced() {
		report.Problems = append(report.Problems, driver.Problem{Kind: "balance", Text: text})
	}
	return report, err
}

// defect is something wrong and how repair.lua mends it.
type defect struct {
	driver.Problem
	what          string
	first, second string
}

// key tells the same defect of two looks.
func (f defect) key() string { return strings.Join([]string{f.Group, f.what, f.first, f.second}, "\n") }

func (s *shard) audit(ctx context.Context, fix bool, report *driver.AuditReport) error {
	once, err := s.look(ctx)
	if err != nil {
		return err
	}
	report.Checked += once.checked
	if len(once.defects) == 0 {
		return nil
	}
	again, err := s.look(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, f := range once.defects {
		seen[f.key()] = true
	}
	slices.SortStableFunc(again.defects, func(a, b defect) int { return rank(a) - rank(b) })
	for _, f := range again.defects {
		if !seen[f.key()] {
			continue
		}
		if fix {
			if f.Fixed, err = s.repair(ctx, f); err != nil {
				return err
			}
		}
		report.Problems = append(report.Problems, f.Problem)
	}
	if fix { // what was mended changes the counts, which are mended last
		return s.recount(ctx)
	}
	return nil
}

func (s *shard) repair(ctx context.Context, f defect) (bool, error) {
	reply, err := s.overAll(ctx, &s.d.scripts.repair, nil, f.Group, f.what, f.first, f.second)
	return reply.Text(0) != "", err // "sound" means that another repair, or time, has mended it
}

// rank puts what others depend on first: a chain before the messages in it.
func rank(f defect) int {
	switch f.what {
	case "head":
		return 0
	case "chain":
		return 1
	case "link":
		return 3
	}
	return 2
}

// recount mends the counters that follow from what is there.
func (s *shard) recount(ctx context.Context) error {
	c, err := s.look(ctx)
	if err != nil {
		return err
	}
	for _, f := range c.defects {
		if f.what == "counts" || f.what == "total" {
			if _, err := s.repair(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// off notes that a counter differs from what is there.
func (c *census) off(group, field string, counted, found int64) {
	if counted == found {
		return
	}
	c.defects = append(c.defects, defect{what: "total", first: field, second: strconv.FormatInt(found-counted, 10),
		Problem: driver.Problem{Kind: "count", Group: group,
			Text: strconv.FormatInt(found, 10) + " messages are counted under " + field + ", which says " +
				strconv.FormatInt(counted, 10)}})
}
