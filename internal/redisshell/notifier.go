package redisshell

import (
	"context"
	"log/slog"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/internal/redisconn"
)

// Notifier listens to what scripts announce on the channels of parts of topics. These are hints: after a reconnect
// everything is looked at once, and whoever waits looks at intervals anyway.
type Notifier[P any] struct {
	listener *redisconn.Listener
	logger   *slog.Logger

	mu    sync.Mutex
	parts map[string]P // by their channels
}

// NewNotifier returns one that listens to nothing yet.
func NewNotifier[P any](c goredis.UniversalClient, logger *slog.Logger) *Notifier[P] {
	return &Notifier[P]{listener: redisconn.NewListener(c), logger: logger, parts: map[string]P{}}
}

// Listen begins to follow the parts of a topic, by their channels. Should that fail, looking at intervals remains.
func (n *Notifier[P]) Listen(t *Topic[P], channelOf func(P) string) {
	var channels []string
	n.mu.Lock()
	for _, part := range t.Parts {
		channel := channelOf(part)
		if _, known := n.parts[channel]; !known {
			channels = append(channels, channel)
		}
		n.parts[channel] = part
	}
	n.mu.Unlock()
	if len(channels) == 0 {
		return
	}
	if err := n.listener.Follow(channels...); err != nil {
		n.logger.Warn("ferry: cannot listen for wake-ups", "topic", t.Name, "error", err)
	}
}

// Run tells what is heard until ctx ends: joined of a part that is followed from now on, or again after a reconnect,
// and heard of an announcement. When the connection is there again it calls back.
func (n *Notifier[P]) Run(ctx context.Context, joined func(P), heard func(part P, payload string), back func()) {
	n.listener.Run(ctx, func(channel string) { joined(n.part(channel)) },
		func(channel, payload string) { heard(n.part(channel), payload) }, back)
}

// part is that of a channel. It is known: nothing else is followed.
func (n *Notifier[P]) part(channel string) P {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.parts[channel]
}

// Close ends the connection. Run ends by its context.
func (n *Notifier[P]) Close() { n.listener.Close() }

// Await waits for what is under way. It ends by itself: the client's timeouts see to that.
func Await(ctx context.Context, underWay *sync.WaitGroup) {
	finished := make(chan struct{})
	go func() { underWay.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-ctx.Done():
	}
}
