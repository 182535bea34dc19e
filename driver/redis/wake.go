package redis

import (
	"context"
	"strconv"
	"strings"
)

// listen begins to follow a topic.
func (d *Driver) listen(t *topic) {
	for _, s := range t.Parts {
		d.scheduler.add(s)
	}
	d.wake.Listen(t, func(s *shard) string { return s.keys[keyTopic] })
}

// hear follows what scripts announce until ctx ends: a group that has something to claim, or a time at which something
// is due.
func (d *Driver) hear(ctx context.Context) {
	d.wake.Run(ctx, d.joined, d.heard, func() { d.shell.Survey.Again(ctx) }) // it may be another server
}

// joined looks at everything that may have been announced before we listened, or while the connection was broken.
func (d *Driver) joined(s *shard) {
	d.scheduler.dueNow(s)
	d.announce(s.t.Name, "")
}

// heard acts on one announcement: "!" everything may have changed, "@" and a time, or the name of a group.
func (d *Driver) heard(s *shard, payload string) {
	if at, ok := strings.CutPrefix(payload, "@"); ok {
		if ms, err := strconv.ParseInt(at, 10, 64); err == nil {
			d.scheduler.dueAt(s, ms)
		}
		return
	}
	d.announce(s.t.Name, strings.TrimPrefix(payload, "!"))
}

// announce tells the subscriptions of a topic, or of one group of it, that there may be something to claim.
func (d *Driver) announce(topic, group string) {
	for _, s := range d.shell.Subscriptions(func(s *subscription) bool { return s.Belongs(topic, group) }) {
		s.Announce()
	}
}
