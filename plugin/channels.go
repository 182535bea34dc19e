package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ferrymq/ferry/notify"
)

// Channels returns channels of notifications with those of the plugins added, for notify.Options. A name that is taken
// is left out, and named in the log.
func (s *Set) Channels(own map[string]notify.Channel) map[string]notify.Channel {
	all := map[string]notify.Channel{}
	maps.Copy(all, own)
	for _, p := range s.running() {
		for _, name := range slices.Sorted(maps.Keys(p.parts.Channels)) {
			if _, taken := all[name]; taken {
				p.log.Error("a channel of a plugin has a name that is taken, and is left out", "channel", name)
				continue
			}
			c, err := p.channel(p.parts.Channels[name])
			if err != nil {
				p.log.Error("a channel of a plugin is left out", "channel", name, "error", err)
				continue
			}
			all[name] = c
		}
	}
	return all
}

// channel is one of a plugin. A panic is a send that failed.
type channel struct {
	inner  notify.Channel
	limits notify.Limits
	of     *started
}

func (p *started) channel(inner notify.Channel) (channel, error) {
	c := channel{inner: inner, of: p}
	err := p.safely(func() error { c.limits = inner.Limits(); return nil })
	return c, err
}

// Send delivers a notification.
func (c channel) Send(ctx context.Context, r notify.Rendered) (sent notify.Sent, err error) {
	panicked := true
	err = c.of.safely(func() (err error) {
		sent, err = c.inner.Send(ctx, r)
		panicked = false
		return err
	})
	if panicked {
		c.of.log.ErrorContext(ctx, "a channel of a plugin panicked", "error", err)
		return notify.Sent{}, fmt.Errorf("plugin: %w", err)
	}
	return sent, err
}

// Limits says what the vendor allows.
func (c channel) Limits() notify.Limits { return c.limits }
