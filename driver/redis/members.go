package redis

import (
	"context"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// keepHouse says at intervals that the subscriptions of this process live, so that those of dead ones stop counting,
// and looks, then and after a reconnect, whether the server still gives what it gave.
func (d *Driver) keepHouse(ctx context.Context) {
	tick := time.NewTicker(memberLife / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.renewMembers(ctx)
		case <-d.changed:
		case <-ctx.Done():
			return
		}
		d.shell.Survey.Again(ctx)
	}
}

// resurvey has the server looked at: it may be another one.
func (d *Driver) resurvey() {
	select {
	case d.changed <- struct{}{}:
	default:
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
				p.ZAddXX(ctx, s.keys[i][topicKeys+keyMembers], goredis.Z{Score: until, Member: s.id})
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		d.o.Logger.Warn("ferry: cannot renew memberships of " + strconv.Itoa(len(subs)) + " subscriptions")
	}
}
