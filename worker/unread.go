package worker

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// noticeUnread looks, beside the work, whether a publish made the default group before this group was there, and nobody
// reads it: what was published until then is not for this group, and waits there for ever. The first group of a topic
// looks for all of them: an answer is about all groups, so that it costs each broker the more the more there are.
func (c *consumer) noticeUnread(ctx context.Context) {
	e := c.e
	ofTopic := func(o *consumer) bool { return o.topic == c.topic }
	if e.consumers[slices.IndexFunc(e.consumers, ofTopic)] != c || slices.ContainsFunc(e.consumers,
		func(o *consumer) bool { return ofTopic(o) && o.group == driver.DefaultGroup }) {
		return
	}
	e.serving.Go(func() {
		stats, err := e.broker.Driver().Stats(ctx, c.topic)
		if err != nil {
			return
		}
		for _, g := range stats.Groups {
			if g.Group == driver.DefaultGroup && g.NeverConsumed() {
				e.log.WarnContext(ctx, "a publish made the group default before there was another, and nothing consumes it",
					"topic", c.topic, "group", c.group, "waiting", g.Ready,
					"hint", "subscribe before the first publish; consume group default, or remove it with 'ferry group rm'")
			}
		}
	})
}
