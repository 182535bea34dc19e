package redisstream

import (
	"context"
	"strings"
)

// listen begins to follow a topic.
func (d *Driver) listen(t *topic) {
	channels := map[string]*partition{}
	for _, p := range t.parts {
		channels[p.key] = p
	}
	d.wake.Listen(t.name, channels)
}

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
	for _, s := range d.shell.Subscriptions(func(s *subscription) bool { return s.belongs(p.topic, group) }) {
		if members {
			s.rebalance()
		}
		s.stir(p.index)
	}
}
