package redis

import (
	"context"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// keepMembers says at intervals that the subscriptions of this process live, so that those of dead ones stop counting.
func (d *Driver) keepMembers(ctx context.Context) {
	for pause(ctx, memberLife/3) {
		d.mu.Lock()
		subs := make([]*subscription, 0, len(d.subs))
		for s := range d.subs {
			subs = append(subs, s)
		}
		d.mu.Unlock()
		if len(subs) == 0 {
			continue
		}
		until := float64(time.Now().Add(memberLife).UnixNano()+d.clock.offset.Load()) / 1e6
		_, err := d.client.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for _, s := range subs {
				for i := range s.keys {
					p.ZAddXX(ctx, s.keys[i][topicKeys+keyMembers], goredis.Z{Score: until, Member: s.member()})
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			d.o.Logger.Warn("ferry: cannot renew memberships of " + strconv.Itoa(len(subs)) + " subscriptions")
		}
	}
}
