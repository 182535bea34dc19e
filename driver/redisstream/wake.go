package redisstream

import (
	"context"
	"strings"
)

// hear follows what scripts announce until ctx ends: a group that has something to claim, or "!" for members that came
// or went.
func (d *Driver) hear(ctx context.Context) {
	d.wake.Run(ctx, func(p *partition) { d.announce(p, "", true) }, func(p *partition, payload string) {
		group, members := strings.CutPrefix(payload, "!")
		d.announce(p, group, members)
	}, func() { d.shell.Survey.Again(ctx) }) // it may be another server
}

// announce tells the subscriptions of a topic, or of one group of it, that a partition may have something to claim, or
// that members changed.
func (d *Driver) announce(p *partition, group string, members bool) {
	for _, s := range d.shell.Subscriptions(func(s *subscription) bool { return s.Belongs(p.t.Name, group) }) {
		if members {
			s.rebalance()
		}
		s.stir(p.index)
	}
}
