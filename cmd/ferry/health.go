package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/internal/jsontime"
	"github.com/ferrymq/ferry/monitor"
)

const healthLong = `Looks at every topic and says whether all is well: healthy, degraded (works, but somebody should
look) or unhealthy, with the reasons: old or growing backlogs, dead letters, parse errors, bounds or memory that are
nearly used up, stuck messages, a broker that does not answer. It looks for --for, every second, since rates and what
does not move take more than one look.

The figures of handlers (error rates, latencies) are known to their processes only: see docs/monitoring.md.

Exit code 1 when it is unhealthy.`

func newHealth(p process) *cobra.Command {
	c := &cobra.Command{Use: "health [TOPIC...]", Short: "Say whether all is well, and if not, why", Long: healthLong,
		Example: "  ferry health\n  ferry health orders --for 10s\n  ferry health --output json | jq .status"}
	r := newRemote(p, c)
	var lasts time.Duration
	c.Flags().DurationVar(&lasts, "for", time.Second, "how long to look")
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			seen, err := s.look(c.Context(), args, lasts)
			if err != nil {
				return err
			}
			return s.showHealth(seen)
		})
	}
	return c
}

func newStuck(p process) *cobra.Command {
	c := &cobra.Command{Use: "stuck [TOPIC...]", Short: "List messages that do not go on: overdue, expired and still " +
		"there, or not taken",
		Example: "  ferry stuck\n  ferry stuck orders --for 10s --output ndjson",
		Long: "Lists queues with messages that are long past their time, past their time to live and still there, or " +
			"ready while consumers\ntake none. The last needs several looks: give it some seconds with --for.\n\nExit code 1 " +
			"when there is one."}
	r := newRemote(p, c)
	var lasts time.Duration
	c.Flags().DurationVar(&lasts, "for", 4*time.Second, "how long to look")
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error {
			seen, err := s.look(c.Context(), args, lasts)
			if err != nil {
				return err
			}
			rows := make([]stuckView, len(seen.Stuck))
			for i, one := range seen.Stuck {
				rows[i] = stuckView{one.Kind, one.Topic, one.Group, one.Count, jsontime.Duration(one.Oldest), one.ID}
			}
			if err := list(s.remote, stuckColumns, rows, "Nothing is stuck."); err != nil {
				return err
			}
			if len(rows) > 0 {
				return failure(fmt.Sprintf("messages of %d queues are stuck", len(rows)),
					"see whether the consumers run; 'ferry audit' finds what is wrong in the broker")
			}
			return nil
		})
	}
	return c
}

// look takes a snapshot every second for a while, and returns the last one.
func (s session) look(ctx context.Context, topics []string, lasts time.Duration) (monitor.Snapshot, error) {
	if lasts < 0 || lasts > time.Hour {
		return monitor.Snapshot{}, usage(fmt.Sprintf("--for %v is out of range", lasts), "use up to 1h")
	}
	for _, topic := range topics {
		if _, err := s.driver.Stats(ctx, topic); err != nil {
			return monitor.Snapshot{}, err
		}
	}
	m, err := monitor.New(s.broker, monitor.Options{Topics: topics})
	if err != nil {
		return monitor.Snapshot{}, err
	}
	seen := m.Look(ctx)
	for end := time.Now().Add(lasts); ; seen = m.Look(ctx) {
		wait := min(time.Second, time.Until(end))
		if wait <= 0 {
			return seen, ctx.Err()
		}
		select {
		case <-ctx.Done():
			return seen, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// stuckView is the JSON form of what is stuck.
type stuckView struct {
	Kind   monitor.StuckKind `json:"kind"`
	Topic  string            `json:"topic"`
	Group  string            `json:"group,omitempty"`
	Count  int               `json:"count"`
	Oldest jsontime.Duration `json:"oldest"`
	ID     string            `json:"id,omitempty"`
}

var stuckColumns = []column[stuckView]{
	{title: "kind", cell: func(v stuckView) any { return v.Kind }},
	{title: "topic", width: 30, cell: func(v stuckView) any { return v.Topic }},
	{title: "group", width: 20, cell: func(v stuckView) any { return v.Group }},
	{title: "count", number: true, cell: func(v stuckView) any { return v.Count }},
	{title: "oldest", number: true, cell: func(v stuckView) any { return ago(v.Oldest) }},
	{title: "id", width: 36, cell: func(v stuckView) any { return v.ID }},
}

// queueView is the JSON form of the figures of one queue.
type queueView struct {
	Topic     string            `json:"topic"`
	Group     string            `json:"group"`
	Ready     int64             `json:"ready"`
	Inflight  int64             `json:"inflight"`
	Waiting   int64             `json:"waiting"`
	Dead      int64             `json:"dead"`
	Consumers int               `json:"consumers"`
	Oldest    jsontime.Duration `json:"oldest"`
	In        float64           `json:"in_per_second"`
	Out       float64           `json:"out_per_second"`
	Growth    float64           `json:"growth_per_second"`
	Full      float64           `json:"full,omitempty"`
}

var queueColumns = []column[queueView]{
	{title: "topic", width: 30, cell: func(v queueView) any { return v.Topic }},
	{title: "group", width: 20, cell: func(v queueView) any { return v.Group }},
	{title: "ready", number: true, cell: func(v queueView) any { return v.Ready }},
	{title: "in flight", number: true, cell: func(v queueView) any { return v.Inflight }},
	{title: "waiting", number: true, cell: func(v queueView) any { return v.Waiting }},
	{title: "dead", number: true, cell: func(v queueView) any { return v.Dead }},
	{title: "oldest", number: true, cell: func(v queueView) any { return ago(v.Oldest) }},
	{title: "in/s", number: true, cell: func(v queueView) any { return fmt.Sprintf("%.1f", v.In) }},
	{title: "out/s", number: true, cell: func(v queueView) any { return fmt.Sprintf("%.1f", v.Out) }},
	{title: "consumers", number: true, cell: func(v queueView) any { return v.Consumers }},
}

// healthView is the JSON form of a verdict.
type healthView struct {
	Status  monitor.Status `json:"status"`
	Reasons []reasonView   `json:"reasons"`
	Queues  []queueView    `json:"queues"`
}

type reasonView struct {
	Status  monitor.Status `json:"status"`
	Code    monitor.Code   `json:"code"`
	Subject string         `json:"subject"`
	Text    string         `json:"text"`
}

func (s session) showHealth(seen monitor.Snapshot) error {
	v := healthView{Status: seen.Health.Status, Reasons: []reasonView{}, Queues: []queueView{}}
	for _, r := range seen.Health.Reasons {
		v.Reasons = append(v.Reasons, reasonView{r.Status, r.Code, r.Subject, r.Text})
	}
	for _, q := range seen.Queues {
		if q.Group != "" {
			v.Queues = append(v.Queues, queueView{q.Topic, q.Group, q.Ready, q.Inflight, q.Waiting, q.Dead, q.Consumers,
				jsontime.Duration(q.Oldest), q.InPerSecond, q.OutPerSecond, q.Growth, q.Full})
		}
	}
	err := s.one(v, func() error {
		if err := s.sayf("%s", v.Status); err != nil {
			return err
		}
		for _, r := range v.Reasons {
			if err := s.sayf("  %s  %s: %s", r.Status, r.Subject, r.Text); err != nil {
				return err
			}
		}
		return list(s.remote, queueColumns, v.Queues, "No topics.")
	})
	if err == nil && v.Status == monitor.Unhealthy {
		err = failure(fmt.Sprintf("unhealthy for %d reasons", len(v.Reasons)),
			"the reasons say where to look; 'ferry stuck' and 'ferry topic ls' tell more")
	}
	return err
}
