package drivertest

import (
	"context"
	"slices"

	"github.com/ferrymq/ferry/driver"
)

// inputDefects take for something what a caller should be told about.
func inputDefects() []Defect {
	return []Defect{
		{"unknown outcome taken for an ack", settling(func(x *driver.Settlement) {
			if x.Outcome > driver.Drop {
				x.Outcome = driver.Ack
			}
		}), []string{"input/settlements"}, false},
		{"bad follow-ups left out", settling(func(x *driver.Settlement) {
			x.Emit = slices.DeleteFunc(slices.Clone(x.Emit),
				func(m *driver.Message) bool { return m.CheckPublish(1<<20) != nil })
		}), []string{"input/settlements"}, false},
		{"receive of none waits", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, receive: func(ctx context.Context, below driver.Subscription,
				most int) ([]*driver.Delivery, error) {
				if most < 1 {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return below.Receive(ctx, most)
			}}
		}, []string{"input/receive of none"}, false},
		{"nil deliveries extended", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, extend: func(ctx context.Context, below driver.Subscription,
				ds []*driver.Delivery) []error {
				return hiding(below.Extend(ctx, ds), driver.ErrInvalid)
			}}
		}, []string{"input/extensions"}, false},
		{"messages not checked", editing(func(m *driver.Message) {
			if m.Retry != nil {
				m.Retry.Base = max(0, m.Retry.Base)
			}
		}), []string{"input/messages"}, false},
		{"edits not checked", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, move: func(ms []driver.Move) []error {
				for i := range ms {
					if e := ms[i].Edit; e != nil && e.Retry != nil {
						ms[i].Edit = e.Clone()
						ms[i].Edit.Retry = nil
					}
				}
				return d.Move(context.Background(), ms)
			}}
		}, []string{"input/moves"}, false},
		{"targets not checked", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d,
				remove: func(ts []driver.Target) []error { return hiding(d.Delete(context.Background(), ts), driver.ErrInvalid) }}
		}, []string{"input/targets"}, false},
		{"negative limit taken for the default", querying(func(q *driver.Query) { q.Limit = max(0, q.Limit) }),
			[]string{"input/queries"}, false},
		{"bad cursor taken for none", querying(func(q *driver.Query) {
			if len(q.Cursor) < 8 {
				q.Cursor = ""
			}
		}), []string{"input/cursors"}, false},
		{"unknown order taken for strict", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, grouped: func(o *driver.GroupOptions) { o.Order = min(o.Order, driver.Relaxed) }}
		}, []string{"input/group options"}, false},
		{"start left out where nothing is kept", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, grouped: func(o *driver.GroupOptions) { o.Start = driver.Position{} }}
		}, []string{"reset/group needs Keep"}, false},
		{"negative bounds taken for none", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, configured: func(c *driver.TopicConfig) { c.MaxMessages = max(0, c.MaxMessages) }}
		}, []string{"input/topic configurations"}, false},
		{"bad names not found", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, stats: func(_ *driver.TopicStats, err error) error {
				if err != nil {
					return driver.NewError(driver.ErrNotFound, "no such topic", "create it", nil)
				}
				return nil
			}}
		}, []string{"input/names"}, false},
	}
}

// querying makes a defect that changes each query.
func querying(change func(*driver.Query)) func(driver.Driver) driver.Driver {
	return func(d driver.Driver) driver.Driver { return &broken{Driver: d, query: change} }
}
