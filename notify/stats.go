package notify

import (
	"context"
	"sync/atomic"
)

// counts of one channel in this process.
type counts struct {
	sent, failed, retried, fellBack, limited, collected, shed, skipped, repeated, unrecorded atomic.Uint64

	last atomic.Pointer[Last]
}

func (c *counts) stats() ChannelStats {
	return ChannelStats{Sent: c.sent.Load(), Failed: c.failed.Load(), Retried: c.retried.Load(),
		FellBack: c.fellBack.Load(), Limited: c.limited.Load(), Collected: c.collected.Load(), Shed: c.shed.Load(),
		Skipped: c.skipped.Load(), Repeated: c.repeated.Load(), Unrecorded: c.unrecorded.Load()}
}

// ChannelStats count targets of one channel since the hub was made, in this process.
type ChannelStats struct {
	// Sent were taken by the vendor. Failed went to the dead letters. Retried are tries that failed and were followed
	// by another; FellBack went on to a fallback.
	Sent, Failed, Retried, FellBack uint64
	// Limited is how often a target waited for the vendor's limits, and Collected how many joined a digest.
	Limited, Collected uint64
	// Shed were not sent, or later, because many waited.
	Shed uint64
	// Skipped were delivered again by the broker although their success was recorded. Repeated were delivered again
	// after a process was lost that may have sent them. Unrecorded were sent, and the broker did not take the record.
	Skipped, Repeated, Unrecorded uint64
}

func (s ChannelStats) plus(o ChannelStats) ChannelStats {
	return ChannelStats{Sent: s.Sent + o.Sent, Failed: s.Failed + o.Failed, Retried: s.Retried + o.Retried,
		FellBack: s.FellBack + o.FellBack, Limited: s.Limited + o.Limited, Collected: s.Collected + o.Collected,
		Shed: s.Shed + o.Shed, Skipped: s.Skipped + o.Skipped, Repeated: s.Repeated + o.Repeated,
		Unrecorded: s.Unrecorded + o.Unrecorded}
}

// Stats of a hub.
type Stats struct {
	// Waiting, Processing, Scheduled and Dead are the targets in the broker, of all processes.
	Waiting, Processing, Scheduled, Dead int64
	// Workers is how many processes send.
	Workers  int
	Channels map[string]ChannelStats
}

// Stats asks the broker, and tells what this process did.
func (h *Hub) Stats(ctx context.Context) (Stats, error) {
	s := Stats{Channels: map[string]ChannelStats{}}
	for name, c := range h.offer.Load().counts {
		s.Channels[name] = c.stats()
	}
	stats, err := h.broker.Driver().Stats(ctx, h.o.Topic)
	if err != nil {
		return s, err
	}
	s.Scheduled = stats.Delayed
	for _, g := range stats.Groups {
		s.Waiting += g.Ready + g.Waiting
		s.Processing += g.Inflight
		s.Dead += g.Dead
		s.Workers += g.Consumers
	}
	return s, nil
}
