package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
)

// assigned is told what a rebalance brings. It is loaded by assign.
func (m *member) assigned(_ context.Context, cl *kgo.Client, got map[string][]int32) {
	ids := got[m.mainName]
	m.NoteGeneration(cl)
	m.d.registry.EndOpen(m.ctx, m.d.cluster.GroupID(m.topic.Name, m.group), ids)
	defer m.unsure.Give() // how long ago the coordinator answered is not known
	m.mu.Lock()
	defer m.mu.Unlock()
	m.joined = true
	m.rejoined()
	for _, id := range ids {
		m.coming[id] = true
	}
	m.wakeAll()
}

// assign loads new partitions before anything is fetched from them. A rebalance ends it in between, and then it is
// called again with the same ones: those that are loaded stay as they are. An error makes kgo give up everything that
// we own, so that it is tried again first: brokers and our client may not know yet what was added a moment ago.
func (m *member) assign(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset,
	error) {
	for deadline := time.Now().Add(m.d.cluster.Settings.Session); ; {
		err := m.ownAll(ctx, slices.Collect(maps.Keys(offsets[m.mainName])))
		if err == nil {
			m.goBack(offsets[m.mainName])
			return offsets, nil
		}
		m.d.cluster.Client.ForceMetadataRefresh()
		if cluster.IsForbidden(err) || time.Now().After(deadline) || cluster.Pause(ctx, cluster.FetchWait/5) != nil {
			return nil, err
		}
	}
}

// ownAll loads partitions, several at once, from where the last owner left off: all that an assignment which was broken
// off has not loaded already.
func (m *member) ownAll(ctx context.Context, ids []int32) error {
	if ids = m.without(ids); len(ids) == 0 {
		return nil
	}
	if err := m.d.cluster.Widen(ctx, m.retryName, int(slices.Max(ids))+1); err != nil {
		return err
	}
	at, err := m.d.registry.Committed(ctx, m.topic, m.group)
	if err != nil {
		return err
	}
	var loading sync.WaitGroup
	slots, errs := make(chan struct{}, loadAtOnce), make([]error, len(ids))
	for i, id := range ids {
		slots <- struct{}{}
		loading.Go(func() {
			errs[i] = m.load(ctx, id, committedAt(at, id))
			<-slots
		})
	}
	loading.Wait()
	return errors.Join(errs...)
}

// loadAtOnce is how many partitions are loaded at the same time.
const loadAtOnce = 16

// revoke lets the holders of deliveries finish, then commits. It returns when the partitions may go to others.
func (m *member) revoke(ctx context.Context, cl *kgo.Client, lost map[string][]int32) {
	ids := lost[m.mainName]
	if len(ids) == 0 {
		return
	}
	m.NoteGeneration(cl) // in a cooperative rebalance the partitions are ours in the new generation too
	ctx, cancel := context.WithTimeout(ctx, cluster.DrainFor)
	defer cancel()
	m.mu.Lock()
	going := m.stopOffering(ids)
	leased := holders(going)
	m.mu.Unlock()
	var calls sync.WaitGroup
	for s, ds := range leased {
		if s.o.Revoking != nil {
			calls.Go(func() { s.o.Revoking(ctx, ds) })
		}
	}
	m.drain(ctx, going)
	calls.Wait()
	m.commitLast(context.WithoutCancel(ctx), cl, going)
	m.drop(ids)
	m.saver.flush(ctx) // the ends that the commit has brought
}

// lose is told that kgo gives partitions up, for whatever went wrong: it may be that a connection broke at the wrong
// moment. As long as the coordinator does not say that we are no member they are ours, and go in order.
func (m *member) lose(ctx context.Context, cl *kgo.Client, lost map[string][]int32) {
	ids := lost[m.mainName]
	m.mu.Lock()
	m.stopOffering(ids)
	m.mu.Unlock()
	if errors.Is(m.askVouched(ctx), kerr.UnknownMemberID) {
		m.Disown()
	}
	m.mu.Lock()
	ours := m.vouched(time.Now())
	m.mu.Unlock()
	if ours {
		m.revoke(ctx, cl, lost)
	} else {
		m.drop(ids)
	}
}

// holders are those who hold deliveries of partitions. A claim that is not completed has none, and is not going to be
// delivered.
func holders(ps []*partition) map[*subscription][]*driver.Delivery {
	leased := map[*subscription][]*driver.Delivery{}
	for _, p := range ps {
		for it := range p.items.all() {
			if c := it.claimed; c != nil && c.delivered {
				leased[c.sub] = append(leased[c.sub], &c.delivery)
			}
		}
	}
	return leased
}

// those are the partitions of which something holds.
func (m *member) those(holds func(*partition) bool) (ps []*partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.parts {
		if holds(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// stopOffering takes what is not leased out of the queue, for good.
func (m *member) stopOffering(ids []int32) (going []*partition) {
	for _, id := range ids {
		p := m.parts[id]
		if p == nil {
			continue
		}
		going = append(going, p)
		p.going = true
		for it := range p.items.all() {
			if it.state == ready || it.state == waiting {
				m.scheduled.Remove(&it.Node)
				m.uncount(it)
			}
		}
	}
	return going
}

// drain waits until nothing of the partitions is leased, or ctx ends.
func (m *member) drain(ctx context.Context, ps []*partition) {
	_ = m.until(ctx, func() bool {
		return !slices.ContainsFunc(ps, func(p *partition) bool { return p.leased > 0 })
	})
}

// drop forgets partitions without committing: leases on them are lost.
func (m *member) drop(ids []int32) {
	m.mu.Lock()
	dropped := m.stopOffering(ids)
	for _, p := range dropped {
		p.lost = true
		for it := range p.items.all() {
			if c := it.claimed; c != nil {
				if !p.leftInOrder {
					c.noteSilent()
				}
				m.end(c)
			}
			m.enter(it, gone)
			m.scheduled.Remove(&it.Node)
			m.uncount(it)
		}
		delete(m.parts, p.id)
	}
	maps.DeleteFunc(m.coming, func(id int32, _ bool) bool { return slices.Contains(ids, id) }) // not loaded yet
	m.wakeAll()
	m.mu.Unlock()
	for _, p := range dropped {
		p.close()
	}
}
