package redis

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	peeksAtOnce   = 4
	shardsPerPeek = 100 // where one command can reach several
	tidyAfter     = 512 // messages: fewer leave no large tables behind
)

// look peeks in the background, unless that is still going on since the last time.
func (c *scheduler) look(ctx context.Context) {
	c.mu.Lock()
	shards := slices.Collect(maps.Keys(c.all))
	skip := c.peeking || len(shards) == 0
	c.peeking = c.peeking || !skip
	c.mu.Unlock()
	if skip {
		return
	}
	c.work.Go(func() {
		c.peek(ctx, shards)
		c.mu.Lock()
		c.peeking = false
		c.mu.Unlock()
	})
}

// peek asks, in one command for all topics where that is possible, what is due and what can be claimed.
func (c *scheduler) peek(ctx context.Context, shards []*shard) {
	size := shardsPerPeek
	if _, cluster := c.d.client.(*goredis.ClusterClient); cluster {
		size = 1
	}
	var asked sync.WaitGroup
	slots := make(chan struct{}, peeksAtOnce)
	for some := range slices.Chunk(shards, size) {
		slots <- struct{}{}
		asked.Go(func() {
			c.peekAt(ctx, some)
			<-slots
		})
	}
	asked.Wait()
}

// question is one key that peek asks about.
type question struct {
	s     *shard
	group string
	kind  byte // see lua/peek.lua
	key   string
}

func (c *scheduler) questions(shards []*shard) (all []question) {
	for _, s := range shards {
		all = append(all, question{s, "", 'z', s.keys[keyDelayed]}, question{s, "", 'z', s.keys[keyExpires]})
		if s.moved.Load() >= tidyAfter {
			all = append(all, question{s, "", padding[0], s.keys[keyBodies]}, question{s, "", paddingID[0], s.keys[keyIDs]})
		}
		g := s.groups()
		for i, name := range g.names {
			of := g.keys[topicKeys+i*groupKeys:]
			all = append(all, question{s, "", 'z', of[keyTimer]})
			consumes := func(sub *subscription) bool { return sub.Belongs(s.t.Name, name) }
			if len(c.d.shell.Subscriptions(consumes)) > 0 {
				for k := keyLane; k < keyLane+8; k++ {
					all = append(all, question{s, name, 'e', of[k]})
				}
			}
		}
	}
	return all
}

func (c *scheduler) peekAt(ctx context.Context, shards []*shard) {
	asked := c.questions(shards)
	keys, kinds := make([]string, len(asked)), make([]byte, len(asked))
	for i, q := range asked {
		keys[i], kinds[i] = q.key, q.kind
	}
	reply, err := c.d.run(ctx, &c.d.scripts.peek, keys, string(kinds))
	if err != nil {
		return // the next one will say
	}
	now, _ := strconv.ParseInt(reply.Text(0), 10, 64)
	c.d.clock.saw(now)
	if len(reply) != len(keys)+1 {
		return // there is nothing
	}
	for i, q := range asked {
		answer, err := strconv.ParseInt(reply.Text(i+1), 10, 64)
		switch {
		case err != nil:
		case q.kind == 'z':
			c.note(q.s, time.Now().Add(soon(answer-now)))
		case q.kind == 'e' && answer == 1:
			c.d.announce(q.s.t.Name, q.group)
		case q.kind == padding[0] && answer == 1:
			q.s.moved.Store(0)
		}
	}
}
