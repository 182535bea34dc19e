package letterjson

import (
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// What no broker writes: counts beyond maxCount, histories longer than maxHistory, attempts that took longer than
// maxDuration.
const (
	maxCount    = 1_000_000
	maxHistory  = 100
	maxDuration = 366 * 24 * time.Hour
	clockSkew   = 24 * time.Hour // between the machine that wrote it and the one that reads it
)

// Check says what in a record no broker can have written, or nil. The message itself is checked when it is published.
func (r Record) Check(now time.Time) error {
	named := driver.Target{Topic: r.Topic, Group: r.Group, ID: r.ID}
	if r.ID == "" {
		named.ID = "-" // some have none
	}
	if err := named.Check(); err != nil {
		return err
	}
	if r.Ref != "" {
		if _, err := driver.ParseRef(r.Ref); err != nil {
			return err
		}
	}
	if err := r.checkCounts(); err != nil {
		return err
	}
	return r.checkTimes(now)
}

func (r Record) checkCounts() error {
	counts := []count{{"attempt", r.Attempt}, {"deliveries", r.Deliveries}}
	if d := r.Dead; d != nil {
		counts = append(counts, count{"dead.attempts", d.Attempts}, count{"dead.deliveries", d.Deliveries},
			count{"dead.rounds", d.Rounds})
	}
	if len(r.History) > maxHistory {
		return fmt.Errorf("a history of %d attempts is too long; a broker keeps %d", len(r.History), driver.HistoryLimit)
	}
	for _, f := range r.History {
		counts = append(counts, count{"history.attempt", f.Attempt})
		if f.Duration < 0 || time.Duration(f.Duration) > maxDuration {
			return fmt.Errorf("history.duration %v is out of range", f.Duration)
		}
	}
	for _, c := range counts {
		if c.n < 0 || c.n > maxCount {
			return fmt.Errorf("%s %d is out of range: no message has more than %d", c.name, c.n, maxCount)
		}
	}
	return nil
}

type count struct {
	name string
	n    int
}

// checkTimes refuses a past that lies ahead, and times before there were any.
func (r Record) checkTimes(now time.Time) error {
	past := map[string]*jsontime.Time{"published_at": r.PublishedAt, "settled_at": r.SettledAt, "found_at": r.FoundAt}
	if r.Dead != nil {
		past["dead.died_at"] = r.Dead.DiedAt
	}
	for _, f := range r.History {
		if err := between("history.at", f.At, now.Add(clockSkew)); err != nil {
			return err
		}
	}
	for name, at := range past {
		if err := between(name, at, now.Add(clockSkew)); err != nil {
			return err
		}
	}
	ahead := map[string]*jsontime.Time{"due_at": r.DueAt, "expires_at": r.ExpiresAt}
	if r.Dead != nil {
		ahead["dead.next_retry_at"] = r.Dead.NextRetryAt
	}
	for name, at := range ahead {
		if err := between(name, at, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			return err
		}
	}
	return nil
}

func between(name string, at *jsontime.Time, end time.Time) error {
	if at != nil && (at.Before(time.Unix(0, 0)) || at.After(end)) {
		return fmt.Errorf("%s %s is out of range", name, at)
	}
	return nil
}
