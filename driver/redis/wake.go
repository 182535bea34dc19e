package redis

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// notifier listens to what scripts announce: a group that has something to claim, or a time at which something is due.
// These are hints: after a reconnect everything is looked at once, and the scheduler looks at intervals anyway.
type notifier struct {
	d      *Driver
	pubsub *goredis.PubSub

	mu     sync.Mutex
	shards map[string]*shard // by the name of their channel
}

func newNotifier(d *Driver) *notifier {
	return &notifier{d: d, pubsub: d.client.Subscribe(context.Background()), shards: map[string]*shard{}}
}

// listen begins to follow a topic. It does not wait for the server; should that fail, the fallback scan remains.
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
		if err := n.pubsub.Subscribe(context.Background(), channels...); err != nil {
			n.d.o.Logger.Warn("ferry: cannot listen for wake-ups", "topic", t.name, "error", err)
		}
	}
}

// run follows the channels until ctx ends.
func (n *notifier) run(ctx context.Context) {
	wait := time.Duration(0)
	for ctx.Err() == nil {
		msg, err := n.pubsub.Receive(ctx)
		if err != nil {
			wait = min(wait+50*time.Millisecond, time.Second)
			if !pause(ctx, wait) {
				return
			}
			continue
		}
		wait = 0
		switch m := msg.(type) {
		case *goredis.Subscription: // new, or after a reconnect
			if s := n.shardOf(m.Channel); s != nil {
				n.d.scheduler.dueNow(s)
				n.d.announce(s.topic, "")
			}
		case *goredis.Message:
			n.heard(m)
		}
	}
}

// heard acts on one announcement: "!" everything may have changed, "@" and a time, or the name of a group.
func (n *notifier) heard(m *goredis.Message) {
	s := n.shardOf(m.Channel)
	if s == nil {
		return
	}
	if at, ok := strings.CutPrefix(m.Payload, "@"); ok {
		if ms, err := strconv.ParseInt(at, 10, 64); err == nil {
			n.d.scheduler.dueAt(s, ms)
		}
		return
	}
	if m.Payload == "!" {
		n.d.announce(s.topic, "")
		return
	}
	n.d.announce(s.topic, m.Payload)
}

func (n *notifier) shardOf(channel string) *shard {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.shards[channel]
}

func (n *notifier) close() { _ = n.pubsub.Close() }

// announce tells the subscriptions of a topic, or of one group of it, that there may be something to claim.
func (d *Driver) announce(topic, group string) {
	d.mu.Lock()
	var subs []*subscription
	for s := range d.subs {
		if s.o.Topic == topic && (group == "" || s.o.Group == group) {
			subs = append(subs, s)
		}
	}
	d.mu.Unlock()
	for _, s := range subs {
		s.announce()
	}
}

// pause waits, and reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
