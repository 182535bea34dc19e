package redisstream

import (
	"context"
	"strings"
	"sync"

	"github.com/ferrymq/ferry/internal/redisconn"
)

// notifier listens to what scripts announce: a group that has something to claim, or "!" for members that came or went.
// These are hints: after a reconnect everything is looked at once, and every Receive looks at intervals anyway.
type notifier struct {
	d        *Driver
	listener *redisconn.Listener

	mu     sync.Mutex
	topics map[string]source // of each channel
}

// source is what a channel tells of.
type source struct {
	topic string
	part  int
}

func newNotifier(d *Driver) *notifier {
	return &notifier{d: d, listener: redisconn.NewListener(d.client), topics: map[string]source{}}
}

// listen begins to follow a topic. Should that fail, the fallback remains.
func (n *notifier) listen(t *topic) {
	var channels []string
	n.mu.Lock()
	for _, p := range t.parts {
		if _, ok := n.topics[p.key]; !ok {
			n.topics[p.key] = source{t.name, p.index}
			channels = append(channels, p.key)
		}
	}
	n.mu.Unlock()
	if len(channels) == 0 {
		return
	}
	if err := n.listener.Follow(channels...); err != nil {
		n.d.o.Logger.Warn("ferry: cannot listen for wake-ups", "topic", t.name, "error", err)
	}
}

// run follows the channels until ctx ends.
func (n *notifier) run(ctx context.Context) {
	n.listener.Run(ctx, redisconn.Ear{
		Joined: func(channel string) { n.d.announce(n.sourceOf(channel), "", true) },
		Heard: func(channel, payload string) {
			group, members := strings.CutPrefix(payload, "!")
			n.d.announce(n.sourceOf(channel), group, members)
		},
		Back: func() { n.d.shell.Survey.Again(ctx) }, // it may be another server
	})
}

func (n *notifier) sourceOf(channel string) source {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.topics[channel]
}

// announce tells the subscriptions of a topic, or of one group of it, that a partition may have something to claim, or
// that members changed.
func (d *Driver) announce(from source, group string, members bool) {
	for _, s := range d.shell.Subscriptions(func(s *subscription) bool { return s.belongs(from.topic, group) }) {
		if members {
			s.rebalance()
		}
		s.stir(from.part)
	}
}
