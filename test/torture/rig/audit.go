package rig

import (
	"context"
	"fmt"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/test/torture/history"
)

// audit writes down what the broker still has, and what it counts, but for a problem that is expected.
func audit(ctx context.Context, d driver.Driver, log *history.Writer, expected string) error {
	for _, state := range []driver.State{driver.StateDelayed, driver.StateHeld, driver.StateInvalid} {
		if err := list(ctx, d, log, driver.Query{Topic: Topic, State: state}); err != nil {
			return err
		}
	}
	for _, group := range groups() {
		for _, state := range []driver.State{driver.StateReady, driver.StateInflight, driver.StateWaiting, driver.StateDead} {
			if err := list(ctx, d, log, driver.Query{Topic: Topic, Group: group, State: state}); err != nil {
				return err
			}
		}
	}
	stats, err := d.Stats(ctx, Topic)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	log.Record(history.Event{Kind: history.KindCounters, Topic: Topic, Counters: &stats})
	report, err := d.Audit(ctx, Topic, false)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	for _, p := range report.Problems {
		if p.Text == expected {
			continue
		}
		log.Record(history.Event{Kind: history.KindProblem, Topic: Topic, Group: p.Group, ID: p.ID,
			Note: p.Kind + ": " + p.Text})
	}
	return nil
}

func list(ctx context.Context, d driver.Driver, log *history.Writer, q driver.Query) error {
	q.Limit = 1000
	for {
		page, err := d.Browse(ctx, q)
		if err != nil {
			return fmt.Errorf("audit: listing %s of group %q: %w", q.State, q.Group, err)
		}
		for i := range page.Entries {
			e := history.Event{Kind: history.KindListed, Topic: Topic, Group: q.Group, State: string(q.State),
				ID: "not decodable"}
			if m := page.Entries[i].Message; m != nil {
				e.ID = m.ID
			}
			log.Record(e)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return nil
		}
	}
}
