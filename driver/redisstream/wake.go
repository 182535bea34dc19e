package redisstream

import (
	"context"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// notifier listens to what scripts announce: a group that has something to claim, or "!" for members that came or went.
// These are hints: after a reconnect everything is looked at once, and every Receive looks at intervals anyway.
type notifier struct {
	d      *Driver
	pubsub *goredis.PubSub

	mu     sync.Mutex
	topics map[string]source // of each channel
}

// source is what a channel tells of.
type source struct {
	topic string
	part  int
}

func newNotifier(d *Driver) *notifier {
	return &notifier{d: d, pubsub: d.client.Subscribe(context.Background()), topics: map[string]source{}}
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
	if err := n.pubsub.Subscribe(context.Background(), channels...); err != nil {
		n.d.o.Logger.Warn("ferry: cannot listen for wake-ups", "topic", t.name, "error", err)
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
			n.d.announce(n.sourceOf(m.Channel), "", true)
		case *goredis.Message:
			group, members := strings.CutPrefix(m.Payload, "!")
			n.d.announce(n.sourceOf(m.Channel), group, members)
		}
	}
}

func (n *notifier) sourceOf(channel string) source {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.topics[channel]
}

func (n *notifier) close() { _ = n.pubsub.Close() }

// announce tells the subscriptions of a topic, or of one group of it, that a partition may have something to claim, or that members changed.
func (d *Driver) announce(from source, group string, members bool) {
	d.mu.Lock()
	var subs []*subscription
	for s := range d.subs {
		if s.o.Topic == from.topic && (group == "" || s.o.Group == group) {
			subs = append(subs, s)
		}
	}
	d.mu.Unlock()
	for _, s := range subs {
		if members {
			s.rebalance()
		}
		s.stir(from.part)
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
