package redis

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/ferrymq/ferry/internal/redisconn"
)

// notifier listens to what scripts announce: a group that has something to claim, or a time at which something is due.
// These are hints: after a reconnect everything is looked at once, and the scheduler looks at intervals anyway.
type notifier struct {
	d        *Driver
	listener *redisconn.Listener

	mu     sync.Mutex
	shards map[string]*shard // by the name of their channel
}

func newNotifier(d *Driver) *notifier {
	return &notifier{d: d, listener: redisconn.NewListener(d.client), shards: map[string]*shard{}}
}

// listen begins to follow a topic. Should that fail, the fallback scan remains.
func (n *notifier) listen(t *topic) {
	var channels []string
	n.mu.Lock()
	for _, s := range t.shards {
		channel := s.keys[keyTopic]
		if n.shards[channel] == nil {
			channels = append(channels, channel)
		}
		n.shards[channel] = s
	}
	n.mu.Unlock()
	for _, s := range t.shards {
		n.d.scheduler.add(s)
	}
	if len(channels) > 0 {
		if err := n.listener.Follow(channels...); err != nil {
			n.d.o.Logger.Warn("ferry: cannot listen for wake-ups", "topic", t.name, "error", err)
		}
	}
}

// run follows the channels until ctx ends.
func (n *notifier) run(ctx context.Context) {
	n.listener.Run(ctx, redisconn.Ear{Joined: n.joined, Heard: n.heard, Back: n.d.resurvey})
}

// joined looks at everything that may have been announced before we listened, or while the connection was broken.
func (n *notifier) joined(channel string) {
	if s := n.shardOf(channel); s != nil {
		n.d.scheduler.dueNow(s)
		n.d.announce(s.topic, "")
	}
}

// heard acts on one announcement: "!" everything may have changed, "@" and a time, or the name of a group.
func (n *notifier) heard(channel, payload string) {
	s := n.shardOf(channel)
	if s == nil {
		return
	}
	if at, ok := strings.CutPrefix(payload, "@"); ok {
		if ms, err := strconv.ParseInt(at, 10, 64); err == nil {
			n.d.scheduler.dueAt(s, ms)
		}
		return
	}
	if payload == "!" {
		payload = ""
	}
	n.d.announce(s.topic, payload)
}

func (n *notifier) shardOf(channel string) *shard {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shards[channel]
}

func (n *notifier) close() { n.listener.Close() }

// announce tells the subscriptions of a topic, or of one group of it, that there may be something to claim.
func (d *Driver) announce(topic, group string) {
	for _, s := range d.shell.Subscriptions(func(s *subscription) bool { return s.belongs(topic, group) }) {
		s.announce()
	}
}
