package unique

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// settlement is a message that one group has settled for good.
type settlement struct {
	topic, group string
	epoch        uint64
	ref          driver.Ref
}

// Settled notes that a group has settled a message for good: acknowledged, dropped or buried it, and the broker has
// accepted that. The value goes when all groups of the topic have. Messages that were not unique are none of its
// business.
func (k *Keeper) Settled(d *driver.Delivery) {
	at, epoch, ok := claimed(d.Message)
	if !ok {
		return
	}
	t := task{at: at, settled: &settlement{d.Topic, d.Group, epoch, d.Ref}}
	if k.caps.SettleLag > 0 {
		t.due = time.Now().Add(k.caps.SettleLag)
	}
	k.add(t)
}

// judge makes writes of settlements. The groups of all topics are read once for all of them, after they were settled: a
// group that got one of these messages is among them, or has been removed since.
func (k *Keeper) judge(ctx context.Context, ts []task) (writes []task) {
	var settled []task
	for _, t := range ts {
		if t.settled == nil {
			writes = append(writes, t)
		} else {
			settled = append(settled, t)
		}
	}
	if len(settled) == 0 {
		return writes
	}
	groups, err := k.groups(ctx)
	if err != nil {
		for _, t := range settled {
			k.retry(t)
		}
		return writes
	}
	var signing sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, t := range settled {
		all := groups[t.settled.topic]
		if len(all) == 0 || len(all) == 1 && all[0] == t.settled.group {
			// The fence is the value itself: whatever was written to it since, it is the same claim.
			t.write = driver.Write{Name: t.at.name, Delete: true,
				Fence: &driver.Fence{Name: t.at.name, Epoch: t.settled.epoch}, Quiet: true}
			t.settled = nil
			writes = append(writes, t)
			continue
		}
		room <- struct{}{}
		signing.Go(func() {
			defer func() { <-room }()
			k.sign(ctx, t, all)
		})
	}
	signing.Wait()
	return writes
}

// groups reads those of every topic.
func (k *Keeper) groups(ctx context.Context) (map[string][]string, error) {
	k.mu.Lock()
	k.looked = time.Now()
	k.mu.Unlock()
	topics, err := k.driver.Topics(ctx)
	if err != nil {
		return nil, err
	}
	groups := make(map[string][]string, len(topics))
	for i := range topics {
		groups[topics[i].Topic] = topics[i].Groups
	}
	return groups, nil
}

// sign adds a group to those that have settled a message, and removes the value if it was the last.
func (k *Keeper) sign(ctx context.Context, t task, groups []string) {
	for range rounds {
		vs, err := k.values.Get(ctx, t.at.bucket, t.at.name)
		if err != nil {
			k.retry(t)
			return
		}
		v := vs[0]
		r, ok := decode(v.Data)
		if v.Epoch != t.settled.epoch || !ok {
			return
		}
		if !slices.Contains(r.Settled, t.settled.group) {
			r.Settled = append(r.Settled, t.settled.group)
		}
		r.Stored, r.Ref = true, t.settled.ref.String() // whatever became of the note of its publisher
		w := driver.Write{Name: v.Name, Delete: true, If: driver.Condition(v.Revision), Quiet: true}
		if !r.complete(groups) {
			w.Delete, w.Data, w.TTL = false, r.encode(), max(v.Left, driver.MinValueTTL)
		}
		err = k.apply(ctx, t.at.bucket, driver.KVOptions{}, w).Err
		if !errors.Is(err, driver.ErrConflict) {
			if again(err) {
				k.retry(t)
			}
			return
		}
	}
	k.retry(t)
}
