package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/jsontime"
)

// How often the picture on a terminal is drawn, and how often a line is printed elsewhere, in ticks.
const (
	statusTick  = time.Second
	ticksPerRow = 5
)

// status shows how the topics are doing, while they are.
type status struct {
	terminal *terminal
	driver   driver.Driver
	meter    *meter
	notices  <-chan string // of alerts
}

// topicLine is what is shown of one topic.
type topicLine struct {
	topic                        string
	published, handled           uint64
	failed                       int64
	retrying, dead, delayed, now int64
	p95                          time.Duration
}

// watch shows the status until ctx ends.
func (s status) watch(ctx context.Context) error {
	ticker := time.NewTicker(statusTick)
	defer ticker.Stop()
	begin := time.Now()
	for n := 1; ; n++ {
		if !s.await(ctx, ticker.C) {
			return nil
		}
		s.meter.tick()
		if !s.terminal.live && n%ticksPerRow != 0 {
			continue
		}
		lines, err := s.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		s.show(lines, time.Since(begin))
	}
}

// await waits for the next tick and prints notices meanwhile, in place of the picture. It reports whether ctx lives.
func (s status) await(ctx context.Context, tick <-chan time.Time) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick:
			return true
		case notice := <-s.notices:
			s.terminal.erase()
			s.terminal.printf("%s\n", printable(notice))
		}
	}
}

func (s status) show(lines []topicLine, elapsed time.Duration) {
	if s.terminal.live {
		s.terminal.draw(s.picture(lines))
		return
	}
	s.terminal.printf("%s\n", row(lines, elapsed))
}

func (s status) read(ctx context.Context) ([]topicLine, error) {
	stats, err := allStats(ctx, s.driver)
	if err != nil {
		return nil, err
	}
	lines := make([]topicLine, len(stats))
	for i, st := range stats {
		l := topicLine{topic: st.Topic, published: st.Published, delayed: st.Delayed}
		for _, g := range st.Groups {
			l.handled += g.Acked
			l.retrying += g.Waiting
			l.dead += g.Dead
			l.now += g.Ready + g.Inflight
		}
		l.failed, l.p95 = s.meter.read(st.Topic)
		lines[i] = l
	}
	return lines, nil
}

// allStats returns the statistics of every topic. One that is deleted meanwhile is left out.
func allStats(ctx context.Context, d driver.Inspector) ([]driver.TopicStats, error) {
	topics, err := d.Topics(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]driver.TopicStats, 0, len(topics))
	for _, info := range topics {
		st, err := d.Stats(ctx, info.Topic)
		if errors.Is(err, ferry.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, st)
	}
	return all, nil
}

// topicWidth is for the names of topics in tables that must fit into 80 columns.
const topicWidth = 12

// picture is the table on a terminal: 80 columns wide, and no wider while no figure has more than seven digits.
func (s status) picture(lines []topicLine) string {
	t := newTable("topic", "published", "handled", "failed", "retry", "dead", "delayed", "ready", "p95")
	for _, l := range lines {
		t.AppendRow([]any{fit(l.topic, topicWidth), l.published, l.handled, l.failed, l.retrying, l.dead, l.delayed, l.now,
			shortly(l.p95)})
	}
	return t.Render()
}

// row is the line in a log.
func row(lines []topicLine, elapsed time.Duration) string {
	parts := make([]string, len(lines))
	for i, l := range lines {
		parts[i] = fmt.Sprintf("%s published=%d handled=%d failed=%d retrying=%d dead=%d delayed=%d ready=%d wait_p95=%s",
			printable(l.topic), l.published, l.handled, l.failed, l.retrying, l.dead, l.delayed, l.now, shortly(l.p95))
	}
	return fmt.Sprintf("%4s  %s", elapsed.Round(time.Second), strings.Join(parts, " | "))
}

// shortly returns a duration with three digits at most.
func shortly[D time.Duration | jsontime.Duration](n D) string {
	d := time.Duration(n)
	for unit := time.Duration(1); unit <= time.Second; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}
