package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ferrymq/ferry/driver"
)

const auditLong = `Looks at every message of a topic, or of all: each must be in exactly one state for each group,
every one in flight must have a lease, and the counts must equal what is there. It prints the
equations and what does not hold, and with --fix repairs it: a repair loses nothing and may be
interrupted. It takes its time; other work goes on meanwhile.

Exit code 1 when problems remain.`

func newAudit(p process) *cobra.Command {
	c := &cobra.Command{Use: "audit [TOPIC]", Short: "Check that no message is lost, and repair what can be",
		Long: auditLong, Example: "  ferry audit\n  ferry audit orders --fix\n  ferry audit --output json | jq " +
			"'.[].problems[]'"}
	r := newRemote(p, c)
	var fix bool
	c.Flags().BoolVar(&fix, "fix", false, "repair what is found")
	onlyOnCommandLine(c.Flags(), "fix")
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.with(c.Context(), func(s session) error { return s.audit(c.Context(), args, fix) })
	}
	return c
}

func (s session) audit(ctx context.Context, topics []string, fix bool) error {
	if len(topics) == 0 {
		infos, err := s.driver.Topics(ctx)
		if err != nil {
			return err
		}
		for _, info := range infos {
			topics = append(topics, info.Topic)
		}
	}
	reports := newListing[auditView](s.remote, nil)
	left := 0
	for _, topic := range topics {
		report, err := s.driver.Audit(ctx, topic, fix)
		if err != nil {
			return fmt.Errorf("audit of topic %s: %w", topic, err)
		}
		v := viewAudit(report)
		left += v.Remaining
		if err := s.showAudit(reports, v); err != nil {
			return err
		}
	}
	if err := reports.end("No topics, no problems."); err != nil {
		return err
	}
	return verdict(left, fix)
}

func verdict(left int, fix bool) error {
	switch {
	case left == 0:
		return nil
	case fix:
		return failure(fmt.Sprintf("%d problems remain", left), "run it again; what stays is a bug of Ferry: please report "+
			"it with this output")
	}
	return failure(fmt.Sprintf("%d problems found", left), "repair them with: ferry audit --fix")
}

// auditView is the JSON form of an audit.
type auditView struct {
	Topic     string        `json:"topic"`
	Checked   int           `json:"checked"`
	Equations []string      `json:"equations"`
	Problems  []problemView `json:"problems"`
	Remaining int           `json:"remaining"`
}

// problemView is one thing that is wrong, or was.
type problemView struct {
	Kind  string `json:"kind"`
	Group string `json:"group,omitempty"`
	ID    string `json:"id,omitempty"`
	Text  string `json:"text"`
	Fixed bool   `json:"fixed"`
}

func viewAudit(a driver.AuditReport) auditView {
	v := auditView{Topic: a.Topic, Checked: a.Checked, Equations: []string{"published " + topicEquation(a.Stats)},
		Problems: []problemView{}}
	for _, g := range a.Stats.Groups {
		v.Equations = append(v.Equations, fmt.Sprintf("group %s received %s", g.Group, groupEquation(g)))
	}
	for _, p := range a.Problems {
		v.Problems = append(v.Problems, problemView(p))
		if !p.Fixed {
			v.Remaining++
		}
	}
	return v
}

// showAudit prints the audit of one topic.
func (s session) showAudit(l *listing[auditView], v auditView) error {
	if s.format != formatTable {
		return l.add(v)
	}
	l.count++
	if err := s.sayf("%s  %d messages checked, %d problems, %d fixed", v.Topic, v.Checked, len(v.Problems),
		len(v.Problems)-v.Remaining); err != nil {
		return err
	}
	for _, e := range v.Equations {
		if err := s.sayf("  %s", e); err != nil {
			return err
		}
	}
	for _, p := range v.Problems {
		mark := "✗"
		if p.Fixed {
			mark = "✓ fixed:"
		}
		if err := s.sayf("  %s %s: %s", mark, p.Kind, p.describe()); err != nil {
			return err
		}
	}
	return nil
}

func (p problemView) describe() string {
	text := p.Text
	if p.ID != "" {
		text = "message " + p.ID + " " + text
	}
	if p.Group != "" {
		text = "group " + p.Group + ": " + text
	}
	return text
}

// topicEquation says where all messages of a topic went.
func topicEquation(s driver.TopicStats) string {
	return fmt.Sprintf("%d = %d fanned + %d delayed + %d held + %d expired + %d cancelled", s.Published, s.Fanned,
		s.Delayed, s.Held, s.Expired, s.Cancelled)
}

// groupEquation says where all messages of a group went.
func groupEquation(g driver.GroupStats) string {
	return fmt.Sprintf("%d = %d acked + %d dropped + %d expired + %d cancelled + %d ready + %d in flight + %d waiting + "+
		"%d dead",
		g.Received, g.Acked, g.Dropped, g.Expired, g.Cancelled, g.Ready, g.Inflight, g.Waiting, g.Dead)
}
