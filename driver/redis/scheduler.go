package redis

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// scheduler makes what is due take effect. It knows when something is due next in each shard, sleeps until then, is
// woken by whatever is due sooner, and looks at everything at intervals in case a wake-up was lost. Any number of
// processes do this at once: promoting is one atomic script, and whoever comes second finds nothing to do. A node that
// does not answer holds up its own shards only.
type scheduler struct {
	d     *Driver
	woken chan struct{}
	work  sync.WaitGroup

	mu      sync.Mutex
	next    map[*shard]time.Time // when something is due; no entry: nothing known
	all     map[*shard]bool
	busy    map[*shard]bool // being promoted
	peeking bool
}

const (
	promoteAtOnce = 200 // bounds one script to a few milliseconds
	asksAtOnce    = 16  // shards that are promoted at the same time
)

func newScheduler(d *Driver) *scheduler {
	return &scheduler{d: d, woken: make(chan struct{}, 1), next: map[*shard]time.Time{}, all: map[*shard]bool{},
		busy: map[*shard]bool{}}
}

// add begins to look after a shard.
func (c *scheduler) add(s *shard) {
	c.mu.Lock()
	c.all[s] = true
	c.mu.Unlock()
	c.dueNow(s)
}

// dueAt notes that something is due in a shard, by the server's clock.
func (c *scheduler) dueAt(s *shard, serverMS int64) { c.note(s, c.d.clock.local(serverMS)) }

func (c *scheduler) dueNow(s *shard) { c.note(s, time.Now()) }

func (c *scheduler) note(s *shard, at time.Time) {
	c.mu.Lock()
	known, ok := c.next[s]
	sooner := c.all[s] && (!ok || at.Before(known))
	if sooner {
		c.next[s] = at
	}
	c.mu.Unlock()
	if sooner {
		c.wake()
	}
}

func (c *scheduler) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// run promotes until ctx ends.
func (c *scheduler) run(ctx context.Context) {
	defer c.work.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	look := time.Now().Add(c.interval())
	for {
		for _, s := range c.due() {
			c.work.Go(func() {
				c.promote(ctx, s)
				c.mu.Lock()
				delete(c.busy, s)
				c.mu.Unlock()
				c.wake()
			})
		}
		if !time.Now().Before(look) {
			c.look(ctx)
			look = time.Now().Add(c.interval())
		}
		timer.Reset(max(0, min(time.Until(look), c.sleep())))
		select {
		case <-timer.C:
		case <-c.woken:
		case <-ctx.Done():
			return
		}
	}
}

// interval is the fallback, spread so that many processes do not ask at once.
func (c *scheduler) interval() time.Duration {
	return c.d.o.Fallback + rand.N(c.d.o.Fallback/5+1)
}

// due takes the shards in which something is due.
func (c *scheduler) due() []*shard {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	var due []*shard
	for s, at := range c.next {
		if !at.After(now) && !c.busy[s] && len(c.busy) < asksAtOnce {
			due = append(due, s)
			c.busy[s] = true
			delete(c.next, s)
		}
	}
	return due
}

// sleep returns how long nothing is due. Whoever is busy now wakes us at the end.
func (c *scheduler) sleep() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := time.Hour
	if len(c.busy) >= asksAtOnce {
		return wait
	}
	for s, at := range c.next {
		if !c.busy[s] {
			wait = min(wait, time.Until(at))
		}
	}
	return wait
}

// promote lets everything that is due in a shard take effect, in small steps.
func (c *scheduler) promote(ctx context.Context, s *shard) {
	for ctx.Err() == nil {
		reply, err := s.overAll(ctx, &c.d.scripts.promote, nil, promoteAtOnce)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				c.d.o.Logger.Warn("ferry: cannot make due what is due", "topic", s.t.Name, "error", err)
				c.note(s, time.Now().Add(c.d.o.Fallback))
			}
			return
		case reply == nil: // the topic is gone
			return
		case reply.Text(0) == "nogroup":
			if _, err := s.join(ctx, membership{group: driver.DefaultGroup, only: true}); err != nil {
				return
			}
			continue
		}
		now, next := reply.Number(1), reply.Number(2)
		c.d.clock.saw(now)
		for group := range strings.FieldsSeq(reply.Text(3)) { // without waiting to hear of it ourselves
			c.d.announce(s.t.Name, group)
		}
		if next > now {
			c.note(s, time.Now().Add(soon(next-now)))
		}
		if reply.Text(2) == "" || next > now {
			return
		}
	}
}

// soon is a wait of so many milliseconds, but at most a day: then one looks again.
func soon(ms int64) time.Duration { return time.Duration(min(ms, 24*60*60*1000)) * time.Millisecond }

// remove ends looking after a topic.
func (c *scheduler) remove(t *topic) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range t.Parts {
		delete(c.all, s)
		delete(c.next, s)
	}
}
