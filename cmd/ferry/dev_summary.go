package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// account says where the messages of one group went. They add up: nothing is lost without a trace.
type account struct {
	topic, group                                     string
	published                                        uint64
	handled, dropped, expired, cancelled, dead, left uint64
}

// accountFor reckons a group's account. What is not due yet, or left before it was, is the topic's and counts for each
// group.
func accountFor(t driver.TopicStats, g driver.GroupStats) account {
	a := account{topic: t.Topic, group: g.Group, handled: g.Acked, dropped: g.Dropped}
	a.published = t.Published - t.Fanned + g.Received
	a.expired = t.Expired + g.Expired
	a.cancelled = t.Cancelled + g.Cancelled
	a.dead = uint64(g.Dead)
	a.left = uint64(t.Delayed + t.Held + g.Ready + g.Inflight + g.Waiting)
	return a
}

// missing returns how many messages the account does not explain.
func (a account) missing() int64 {
	return int64(a.published) - int64(a.handled+a.dropped+a.expired+a.cancelled+a.dead+a.left)
}

// summarize prints the accounts and the dead letters. It fails if something does not add up.
func summarize(ctx context.Context, t *terminal, d driver.Driver, elapsed time.Duration) error {
	stats, err := allStats(ctx, d)
	if err != nil {
		return err
	}
	t.printf("\n%s\n", t.bold(fmt.Sprintf("stopped after %s", shortly(elapsed))))
	if len(stats) == 0 {
		t.printf("  no messages\n")
		return nil
	}
	var wrong error
	var accounts []account
	for _, st := range stats {
		for _, g := range st.Groups {
			a := accountFor(st, g)
			accounts = append(accounts, a)
			if n := a.missing(); n != 0 && d.Capabilities().Counts == driver.CountsExact {
				wrong = errors.Join(wrong, fmt.Errorf("%d messages of topic %s, group %s, are not accounted for", n, a.topic,
					a.group))
			}
		}
	}
	t.printf("%s\n", accountTable(accounts))
	return errors.Join(wrong, summarizeDead(ctx, t, d, stats))
}

// accountTable shows accounts. What is zero in all of them is left out, so that it fits into 80 columns.
func accountTable(accounts []account) string {
	columns := []struct {
		title  string
		always bool
		value  func(account) uint64
	}{
		{"published =", true, func(a account) uint64 { return a.published }},
		{"handled +", true, func(a account) uint64 { return a.handled }},
		{"dropped +", false, func(a account) uint64 { return a.dropped }},
		{"expired +", false, func(a account) uint64 { return a.expired }},
		{"cancelled +", false, func(a account) uint64 { return a.cancelled }},
		{"dead +", true, func(a account) uint64 { return a.dead }},
		{"left", true, func(a account) uint64 { return a.left }},
	}
	titles := []string{"topic", "group"}
	rows := make([][]any, len(accounts))
	for i, a := range accounts {
		rows[i] = []any{fit(a.topic, topicWidth), short(a.group, topicWidth)}
	}
	for _, c := range columns {
		if !c.always && !slices.ContainsFunc(accounts, func(a account) bool { return c.value(a) > 0 }) {
			continue
		}
		titles = append(titles, c.title)
		for i, a := range accounts {
			rows[i] = append(rows[i], c.value(a))
		}
	}
	table := newTable(titles...)
	for _, row := range rows {
		table.AppendRow(row)
	}
	return table.Render()
}

// deadSample is at most how many dead letters of a group are looked at.
const deadSample = 1000

// summarizeDead prints the dead letters, like errors together.
func summarizeDead(ctx context.Context, t *terminal, d driver.Driver, stats []driver.TopicStats) error {
	type kind struct{ topic, fingerprint string }
	counts := map[kind]int{}
	for _, st := range stats {
		for _, g := range st.Groups {
			page, err := d.Browse(ctx, driver.Query{Topic: st.Topic, Group: g.Group, State: driver.StateDead, Limit: deadSample})
			if err != nil {
				return err
			}
			for _, e := range page.Entries {
				counts[kind{st.Topic, e.Dead.Fingerprint}]++
			}
		}
	}
	if len(counts) == 0 {
		return nil
	}
	t.printf("\n%s\n", t.bold("dead letters by error"))
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b kind) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return slices.Compare([]string{a.topic, a.fingerprint}, []string{b.topic, b.fingerprint})
	})
	for _, k := range kinds[:min(10, len(kinds))] {
		t.printf("  %5d  %s  %s\n", counts[k], fit(k.topic, topicWidth), strings.TrimRight(fit(k.fingerprint, 56), " "))
	}
	return nil
}
