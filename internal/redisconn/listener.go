package redisconn

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// silenceLimit is how long a connection that listens may be silent before it is asked whether it lives, and again until
// it is given up: one that was cut without a word would be deaf for ever.
const silenceLimit = 15 * time.Second

// Listener follows channels over any number of reconnects. What it hears are hints: while it is not connected it misses
// them.
type Listener struct {
	client  goredis.UniversalClient
	silence time.Duration

	mu       sync.Mutex
	closed   bool
	pubsub   *goredis.PubSub
	channels []string
}

// NewListener returns a listener that follows nothing yet. No connection is made before it does.
func NewListener(c goredis.UniversalClient) *Listener {
	return &Listener{client: c, silence: silenceLimit, pubsub: c.Subscribe(context.Background())}
}

// Follow begins to follow channels. It does not wait for the server to confirm. After an error they are followed as
// soon as the connection is back.
func (l *Listener) Follow(channels ...string) error {
	l.mu.Lock()
	l.channels = append(l.channels, channels...)
	pubsub := l.pubsub
	l.mu.Unlock()
	return Classify(pubsub.Subscribe(context.Background(), channels...))
}

// Run tells what is heard until ctx ends, one after the other: joined of a channel that is followed from now on, or
// again after a reconnect, and heard of a message. It calls back when the connection is there again.
func (l *Listener) Run(ctx context.Context, joined func(channel string), heard func(channel, payload string),
	back func()) {
	wait, asked := time.Duration(0), false
	for ctx.Err() == nil {
		pubsub := l.current()
		msg, err := pubsub.ReceiveTimeout(ctx, l.silence)
		if err != nil {
			if isTimeout(err) {
				if asked = !asked; asked {
					_ = pubsub.Ping(ctx)
				} else {
					l.renew(ctx)
				}
				continue
			}
			wait = min(wait+50*time.Millisecond, time.Second)
			if !Pause(ctx, wait) {
				return
			}
			continue
		}
		if wait > 0 {
			back()
		}
		wait, asked = 0, false
		switch m := msg.(type) {
		case *goredis.Subscription:
			if m.Kind == "subscribe" {
				joined(m.Channel)
			}
		case *goredis.Message:
			heard(m.Channel, m.Payload)
		}
	}
}

func isTimeout(err error) bool {
	var e net.Error
	var dial *net.OpError
	return errors.As(err, &e) && e.Timeout() && !errors.Is(err, context.DeadlineExceeded) &&
		(!errors.As(err, &dial) || dial.Op != "dial")
}

func (l *Listener) current() *goredis.PubSub {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pubsub
}

// renew gives up a connection that does not answer.
func (l *Listener) renew(ctx context.Context) {
	fresh := l.client.Subscribe(ctx)
	l.mu.Lock()
	old := l.pubsub
	if l.closed {
		old = fresh
	} else {
		l.pubsub = fresh
	}
	channels := append([]string(nil), l.channels...)
	l.mu.Unlock()
	_ = old.Close()
	if len(channels) > 0 {
		_ = fresh.Subscribe(ctx, channels...) // should it fail, the client subscribes when it is connected again
	}
}

// Close ends the connection. Run ends by its context.
func (l *Listener) Close() {
	l.mu.Lock()
	l.closed = true
	pubsub := l.pubsub
	l.mu.Unlock()
	_ = pubsub.Close()
}

// Pause waits, and reports whether ctx is still alive.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
