package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// Times of upkeep.
const (
	trimEvery  = 30 * time.Second
	aliveEvery = 12 * time.Hour // brokers forget the offsets of an empty group after 7 days by default
)

// housekeeper cleans up behind groups.
type housekeeper struct{ *Driver }

// keepHouse cleans up behind the groups of this process, and keeps the offsets of groups alive that nobody consumes.
func (d housekeeper) keepHouse(ctx context.Context) {
	for revived := time.Now(); cluster.Pause(ctx, trimEvery) == nil; {
		pass, cancel := context.WithTimeout(ctx, trimEvery)
		_ = d.trimAll(pass) // only room: tried again with the next tick
		if time.Since(revived) > aliveEvery {
			revived = time.Now()
			_ = d.keepAlive(pass)
		}
		cancel()
	}
}

// trimAll trims the topics that this process consumes: others trim theirs.
func (d housekeeper) trimAll(ctx context.Context) error {
	for _, t := range d.groups.Consumed() {
		if err := d.trim(ctx, t); err != nil {
			return err
		}
	}
	return d.groups.TrimLogs(ctx)
}

// trim deletes what every group of a topic has settled, and what is older than Keep. It never passes what a group has
// not committed.
func (d housekeeper) trim(ctx context.Context, t *registry.TopicState) error {
	if err := d.registry.Meta.Sync(ctx); err != nil { // a group that was just made counts
		return err
	}
	groups := d.registry.GroupsOf(t.Name)
	if len(groups) == 0 {
		return nil
	}
	low, err := d.cluster.CommittedEnds(ctx, t.Main)
	if err != nil {
		return err
	}
	for _, g := range groups {
		at, err := d.registry.Committed(ctx, t, g)
		if err != nil {
			return err
		}
		for id := range low {
			low[id] = max(0, min(low[id], at[id].At)) // 0 where it is not known how far the group is
		}
	}
	return d.cluster.DeleteBefore(ctx, t.Main,
		d.history.before(t.Name, time.Now(), d.registry.RowOf(t).Config.Keep, low))
}

// settledAt is how far all groups of a topic were at a time.
type settledAt struct {
	at  time.Time
	low map[int32]int64
}

// trimHistory is how far the groups of topics were, for topics that keep what is settled. Only keepHouse uses it.
type trimHistory map[string][]settledAt

// before notes how far all groups of a topic are, and returns how far they were Keep ago. After a restart it begins
// anew: what is kept is kept longer.
func (h trimHistory) before(topic string, now time.Time, keep time.Duration,
	low map[int32]int64) (past map[int32]int64) {
	if keep <= 0 {
		return low
	}
	points := h[topic]
	if n := len(points); n == 0 || now.Sub(points[n-1].at) > keep/100 {
		points = append(points, settledAt{now, low})
	}
	for len(points) > 0 && now.Sub(points[0].at) >= keep {
		past, points = points[0].low, points[1:]
	}
	h[topic] = points
	return past
}

// keepAlive commits the offsets of groups without consumers again, as they are.
func (d housekeeper) keepAlive(ctx context.Context) error {
	for _, name := range d.registry.TopicNames() {
		t, err := d.registry.Current(ctx, name)
		if err != nil {
			continue
		}
		for _, g := range d.registry.GroupsOf(name) {
			if err := d.revive(ctx, t, g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d housekeeper) revive(ctx context.Context, t *registry.TopicState, group string) error {
	busy, err := d.groups.Consumers(ctx, t.Name, group)
	if err != nil || busy {
		return err
	}
	found, err := d.registry.Committed(ctx, t, group)
	if err != nil {
		return err
	}
	var offsets kadm.Offsets
	for _, o := range found {
		if o.At >= 0 {
			offsets.Add(o)
		}
	}
	err = d.registry.CommitAsNobody(ctx, t, group, offsets)
	if cluster.IsKafka(err, kerr.UnknownMemberID) { // somebody consumes again
		return nil
	}
	return err
}
