package alert

import (
	"context"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/guard"
	"github.com/ferrymq/ferry/spool"
)

// Parts are what of a process the broker does not know, and rules can be about. A process tells of them either as a
// member, with cluster.Options.Figures, to whoever evaluates; or, if it evaluates itself, with Options.Sources. Not
// both: figures are added up.
type Parts struct {
	// Broker is one with a spool in front; without one it tells nothing.
	Broker *ferry.Broker
	// Guards are limiters, breakers and other layers.
	Guards []Counter
	// Recoverer brings dead letters back.
	Recoverer *deadletter.Recoverer
}

// Counter is a layer of guards.
type Counter interface{ Stats() guard.Stats }

// Figures tells of the parts. Names with _total are counts since the process started: whoever evaluates reckons from
// them how much they grew.
func (p Parts) Figures() map[string]float64 {
	told := map[string]float64{}
	if p.Broker != nil {
		if d, ok := p.Broker.Driver().(interface{ SpoolStats() spool.Stats }); ok {
			s := d.SpoolStats()
			told["degraded_messages"], told["kafka_failures_total"] = float64(s.Messages), float64(s.Failures)
		}
	}
	for _, g := range p.Guards {
		s := g.Stats()
		told["rate_limit_violations_total"] += float64(s.Limited)
		told["users_blocked_total"] += float64(s.Penalties)
		told["messages_denied_total"] += float64(s.Refused)
	}
	if p.Recoverer != nil {
		// One that does not lead, or has not looked yet, knows nothing of the dead letters.
		if s := p.Recoverer.Stats(); s.Leading && s.Passes > 0 {
			told["dlq_unrecoverable"], told["dlq_consumer_lag"] = float64(s.Unrecoverable), float64(s.Waiting+s.Blocked)
			told["dlq_manual_review_pending"] = float64(s.AwaitingReview)
		}
	}
	return told
}

// Source is Figures for Options.Sources.
func (p Parts) Source(context.Context) (map[string]float64, error) { return p.Figures(), nil }
