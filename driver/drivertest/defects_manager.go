package drivertest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
)

func managerDefects() []Defect {
	return []Defect{
		{"bound ignored", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, configured: func(c *driver.TopicConfig) { c.MaxMessages, c.MaxBytes = 0, 0 }}
		}, []string{"bounds/messages", "bounds/bytes", "bounds/bytes after edits", "bounds/in a batch",
			"publish/one receipt each"}, false},
		{"expired never to the dead letters", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, configured: func(c *driver.TopicConfig) { c.ExpiredDead = false }}
		}, []string{"expiry/to the dead letters"}, false},
		{"nothing kept", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, configured: func(c *driver.TopicConfig) { c.Keep = 0 }}
		}, []string{"reset/to begin", "reset/kept is shown and ends"}, false},
		{"pause ignored", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, pause: func() error { return nil }}
		}, []string{"pause/topic", "pause/group", "pause/due meanwhile"}, true},
		{"purge takes what is in flight", purgeInflight, []string{"purge/what is queued"}, true},
		{"delete without effect", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, remove: func(ts []driver.Target) []error { return make([]error, len(ts)) }}
		}, []string{"delete/in each state", keptCase, "delay/hold then roll back", "dead/deleted"}, true},
		{"move without effect", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, move: func(ms []driver.Move) []error { return make([]error, len(ms)) }}
		}, []string{"move/runs now", "move/settled to another group", "dead/replay starts over",
			"delay/hold then commit"}, true},
		{"move in the only group there is", moveInSomeGroup, []string{"move/names a group"}, false},
		{"replay copies the dead letter", replayCopies, []string{"dead/replay starts over", "dead/conserved"}, true},
		{"dead letters without history", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, page: func(p *driver.Page) {
				for _, e := range p.Entries {
					if e.Dead != nil {
						e.Dead.History = nil
					}
				}
			}}
		}, []string{"dead/complete", "dead/history is bounded"}, false},
		{"dead letters in the order of publishing", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, page: func(p *driver.Page) {
				slices.SortStableFunc(p.Entries, func(a, b driver.Entry) int { return cmp.Compare(a.Ref.Pos, b.Ref.Pos) })
			}}
		}, []string{"dead/oldest first"}, false},
		{"a parse error was found when it is looked at", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, page: func(p *driver.Page) {
				for i := range p.Entries {
					if p.Entries[i].State == driver.StateInvalid {
						p.Entries[i].FoundAt = time.Now()
					}
				}
			}}
		}, []string{"invalid/tells when"}, false},
		{"a page lacks its last entry", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, page: func(p *driver.Page) { p.Entries = p.Entries[:max(0, len(p.Entries)-1)] }}
		}, []string{"inspect/browse by pages", "inspect/browse each state", "dead/stays"}, false},
		{"stats lie", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, stats: func(s *driver.TopicStats, err error) error {
				for i := range s.Groups {
					s.Groups[i].Ready++
				}
				return err
			}}
		}, []string{"inspect/stats balance always", "release/park counts nothing"}, true},
		{"errors without hints", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d, stats: func(_ *driver.TopicStats, err error) error {
				if err != nil {
					return driver.ErrNotFound
				}
				return nil
			}}
		}, []string{"input/errors carry hints"}, false},
		{"capabilities understated", func(d driver.Driver) driver.Driver {
			return &broken{Driver: d,
				caps: func(c *driver.Capabilities) { c.Counts, c.History = driver.CountsEstimated, driver.HistoryNone }}
		}, []string{"capabilities/pinned"}, false},
	}
}

// purgeInflight drops what consumers hold, too.
func purgeInflight(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.purge = func(ctx context.Context, below driver.Driver, topic, group string) (int, error) {
		b.mu.Lock()
		held := b.held
		b.held = nil
		b.mu.Unlock()
		n := 0
		for x, s := range held {
			if x.Topic == topic && (group == "" || group == x.Group) &&
				s.Settle(ctx, []driver.Settlement{{Delivery: x, Outcome: driver.Drop}})[0] == nil {
				n++
			}
		}
		more, err := below.Purge(ctx, topic, group)
		return n + more, err
	}
	return b
}

// moveInSomeGroup moves what belongs to groups although none is named.
func moveInSomeGroup(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.move = func(ms []driver.Move) []error {
		for i := range ms {
			if es, err := b.Driver.Get(context.Background(), ms[i].Target); err == nil && ms[i].Group == "" {
				ms[i].Group = es[0].Group
			}
		}
		return b.Driver.Move(context.Background(), ms)
	}
	return b
}

// replayCopies publishes a dead letter again and leaves it where it is.
func replayCopies(d driver.Driver) driver.Driver {
	b := &broken{Driver: d}
	b.move = func(ms []driver.Move) []error {
		errs := make([]error, len(ms))
		for i, m := range ms {
			es, err := b.Driver.Get(context.Background(), m.Target)
			if err != nil || es[0].State != driver.StateDead {
				errs[i] = b.Driver.Move(context.Background(), ms[i:i+1])[0]
				continue
			}
			c := es[0].Clone()
			c.ID += "-copy"
			_, errs[i] = b.Driver.Publish(context.Background(), []*driver.Message{c}, driver.PublishOptions{})
		}
		return errs
	}
	return b
}
