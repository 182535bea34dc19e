package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Times of upkeep.
const (
	trimEvery  = 30 * time.Second
	aliveEvery = 12 * time.Hour // brokers forget the offsets of an empty group after 7 days by default
)

// keepHouse cleans up behind the groups of this process, and keeps the offsets of groups alive that nobody consumes.
func (d *Driver) keepHouse(ctx context.Context) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	revived := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
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
func (d *Driver) trimAll(ctx context.Context) error {
	topics := map[string]*topicState{}
	d.mu.Lock()
	for _, m := range d.members {
		topics[m.topic.name] = m.topic
	}
	d.mu.Unlock()
	for _, t := range topics {
		if err := d.trim(ctx, t); err != nil {
			return err
		}
	}
	return d.trimSides(ctx)
}

// trim deletes what every group of a topic has settled, and what is older than Keep. It never passes what a group has
// not committed.
func (d *Driver) trim(ctx context.Context, t *topicState) error {
	if err := d.meta.sync(ctx); err != nil { // a group that was just made counts
		return err
	}
	groups := d.groupsOf(t.name)
	if len(groups) == 0 {
		return nil
	}
	low, err := d.position(ctx, t, endPosition)
	if err != nil {
		return err
	}
	for _, g := range groups {
		at, err := d.committed(ctx, t, g)
		if err != nil {
			return err
		}
		for id := range low {
			if o, ok := at[id]; !ok || o.At < 0 {
				low[id] = 0 // it is not known how far the group is
			} else {
				low[id] = min(low[id], o.At)
			}
		}
	}
	return d.deleteBefore(ctx, d.mainTopic(t.name), t.settledBefore(time.Now(), d.rowOf(t).Config.Keep, low))
}

// settled is how far all groups were at a time.
type settled struct {
	at  time.Time
	low map[int32]int64
}

// settledBefore notes how far all groups are, and returns how far they were Keep ago. After a restart it begins anew: what
// is kept is kept longer. Only keepHouse calls it.
func (t *topicState) settledBefore(now time.Time, keep time.Duration, low map[int32]int64) map[int32]int64 {
	if keep <= 0 {
		return low
	}
	if n := len(t.history); n == 0 || now.Sub(t.history[n-1].at) > keep/100 {
		t.history = append(t.history, settled{now, low})
	}
	var past map[int32]int64
	for len(t.history) > 0 && now.Sub(t.history[0].at) >= keep {
		past = t.history[0].low
		t.history = t.history[1:]
	}
	return past
}

// trimSides deletes the beginning of owned side logs, before the oldest record that is still needed, so that the next
// owner reads little.
func (d *Driver) trimSides(ctx context.Context) error {
	d.mu.Lock()
	members := make([]*member, 0, len(d.members))
	for _, m := range d.members {
		members = append(members, m)
	}
	d.mu.Unlock()
	for _, m := range members {
		low := map[int32]int64{}
		m.mu.Lock()
		for id, p := range m.parts {
			if at := p.oldestSide(); at > p.trimmed && !p.dirty {
				low[id], p.trimmed = at, at
			}
		}
		grown := m.grownSides()
		m.mu.Unlock()
		for _, p := range grown {
			if err := p.mark(ctx); err != nil {
				return err
			}
		}
		if err := d.deleteBefore(ctx, m.sideName, low); err != nil {
			return err
		}
	}
	return nil
}

// sideGrowth is how many records of a side log make a new mark of ownership worth while, so that what is before it can go.
const sideGrowth = 10_000

func (m *member) grownSides() (grown []*partition) {
	for _, p := range m.parts {
		if p.tally.Side-p.markedAt > sideGrowth {
			grown = append(grown, p)
		}
	}
	return grown
}

// mark says again in the side log who owns it.
func (p *partition) mark(ctx context.Context) error {
	r := p.takeOver(nil)[0]
	if err := p.m.d.produce(ctx, r); err != nil {
		return err
	}
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	p.markedAt = r.Offset
	return nil
}

// oldestSide is the first offset of the side log that is needed: of an item, or of our own mark of ownership. What ended is needed until it is committed.
func (p *partition) oldestSide() int64 {
	if len(p.marks) > 0 {
		return p.trimmed
	}
	at := p.markedAt
	for it := range p.items.all() {
		if it.side != "" {
			at = min(at, it.at)
		}
	}
	return at
}

func (d *Driver) deleteBefore(ctx context.Context, topic string, low map[int32]int64) error {
	starts, err := d.admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return err
	}
	var offsets kadm.Offsets
	for id, at := range low {
		if start, ok := starts.Lookup(topic, id); ok && at > start.Offset {
			offsets.AddOffset(topic, id, at, -1)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	_, err = d.admin.DeleteRecords(ctx, offsets)
	return err
}

// keepAlive commits the offsets of groups without consumers again, as they are.
func (d *Driver) keepAlive(ctx context.Context) error {
	for _, name := range d.topicNames() {
		t, err := d.current(ctx, name)
		if err != nil {
			continue
		}
		for _, g := range d.groupsOf(name) {
			if err := d.revive(ctx, t, g); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Driver) revive(ctx context.Context, t *topicState, group string) error {
	busy, err := d.consumers(ctx, t.name, group)
	if err != nil || busy {
		return err
	}
	found, err := d.committed(ctx, t, group)
	if err != nil {
		return err
	}
	var offsets kadm.Offsets
	for _, o := range found {
		if o.At >= 0 {
			offsets.Add(o)
		}
	}
	if err := d.commitAsNobody(ctx, t, group, offsets); err != nil && !isKafka(err, kerr.UnknownMemberID) {
		return err // otherwise somebody consumes again
	}
	return nil
}
