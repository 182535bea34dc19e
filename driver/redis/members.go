package redis

import (
	"context"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/internal/redisconn"
)

// keepHouse says at intervals that the subscriptions of this process live, so that those of dead ones stop counting,
// and looks whether the server still gives what it gave.
func (d *Driver) keepHouse(ctx context.Context) {
	for redisconn.Pause(ctx, memberLife/3) {
		d.renewMembers(ctx)
		d.shell.Survey.Again(ctx)
	}
}

func (d *Driver) renewMembers(ctx context.Context) {
	subs := d.shell.Subscriptions(func(*subscription) bool { return true })
	if len(subs) == 0 {
		return
	}
	until := float64(time.Now().Add(memberLife).UnixNano()+d.clock.offset.Load()) / 1e6
	_, err := d.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, s := range subs {
			for i := range s.keys {
				p.ZAddXX(ctx, s.keys[i][topicKeys+keyMembers], goredis.Z{Score: until, Member: s.ID})
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		d.o.Logger.Warn("ferry: cannot renew memberships of " + strconv.Itoa(len(subs)) + " subscriptions")
	}
}
