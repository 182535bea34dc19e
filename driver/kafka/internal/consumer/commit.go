package consumer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
)

// keepCommitting commits what is done, every now and then.
func (m *member) keepCommitting(ctx context.Context) {
	for cluster.Pause(ctx, cluster.CommitEvery) == nil {
		m.copyRests()
		m.PassOn()
		_ = m.CommitDirty(ctx) // tried again with the next tick, since it stays dirty
	}
}

// CommitDirty commits what has changed.
func (m *member) CommitDirty(ctx context.Context) error {
	err := m.commit(ctx, m.those(func(p *partition) bool { return p.dirty })...)
	if err != nil {
		m.NoteGeneration(m.cl) // partitions that stay ours in a rebalance have a new one
		if cluster.IsKafka(err, kerr.UnknownMemberID) {
			m.unsure.Give()
		}
	}
	return err
}

// commitLast commits before partitions go, and refuses settlements from now on: what is still leased is committed as
// such, and the next owner delivers it. A coordinator in the middle of a rebalance refuses for a moment. What cannot be
// committed is delivered again.
func (m *member) commitLast(ctx context.Context, cl *kgo.Client, ps []*partition) {
	ctx, cancel := context.WithTimeout(ctx, cluster.DrainFor)
	defer cancel()
	m.mu.Lock()
	for _, p := range ps {
		p.over, p.dirty = true, true
	}
	m.mu.Unlock()
	m.storeUnnamed(ctx, ps)
	for {
		err := m.commit(ctx, ps...)
		if err == nil {
			m.mu.Lock()
			for _, p := range ps {
				p.leftInOrder = true // the next owner knows that nothing of it was lost
			}
			m.mu.Unlock()
		}
		if err == nil || cluster.IsKafka(err, kerr.UnknownMemberID) || cluster.Pause(ctx, cluster.FetchWait/5) != nil {
			return
		}
		m.NoteGeneration(cl)
	}
}

// storeUnnamed stores what was given back in the retry log where the last commit has no room to name all of it: the
// next owner is told of each. So it does with losses, and with places at the tail of a key, that are not stored yet.
func (m *member) storeUnnamed(ctx context.Context, ps []*partition) {
	for range 3 { // what is stored may take room, too
		var unnamed []*Item
		m.mu.Lock()
		for _, p := range ps {
			if !p.lost {
				_, more := p.compose("", p.done, nil, offsets.ListRoom)
				unnamed = append(unnamed, more...)
				for it := range p.items.all() {
					if it.unsaved || it.tailUnsaved {
						unnamed = append(unnamed, it)
					}
				}
			}
		}
		for _, it := range unnamed {
			it.unsaved = true
		}
		m.mu.Unlock()
		if len(unnamed) == 0 {
			return
		}
		m.saver.awaitSaved(ctx, unnamed)
	}
}

// commit stores the contiguous prefix of each partition, with what is done beyond it as metadata. The generation is
// the one of the assignment: a commit that is late, after others took over, is refused by the broker.
func (m *member) commit(ctx context.Context, ps ...*partition) error {
	if len(ps) == 0 {
		return nil
	}
	slices.SortFunc(ps, func(a, b *partition) int { return cmp.Compare(a.id, b.id) })
	for _, p := range ps {
		p.commits.Lock() // an older commit must not overtake a newer one; nothing else waits for this lock
	}
	defer func() {
		for _, p := range ps {
			p.commits.Unlock()
		}
	}()
	var sent []*partition
	var named []bool // whether it says of each that something is leased
	m.mu.Lock()
	req, t := m.CommitAs(m.d.cluster.GroupID(m.topic.Name, m.group), m.mainName)
	for _, p := range ps {
		if !p.dirty || p.lost {
			continue
		}
		p.dirty = false
		sent, named = append(sent, p), append(named, p.leased > 0)
		t.Partitions = append(t.Partitions, cluster.CommitOf(p.id, p.done, p.metadata()))
	}
	m.mu.Unlock()
	if len(sent) == 0 {
		return nil
	}
	err := cluster.SendCommit(ctx, m.d.cluster.Client, req)
	m.mu.Lock()
	for i, p := range sent {
		if err != nil {
			p.dirty = true
			p.refused(time.Now())
			continue
		}
		p.begun = p.begun || named[i]
		p.accepted(t.Partitions[i].Offset, *t.Partitions[i].Metadata)
	}
	m.mu.Unlock()
	return err
}
