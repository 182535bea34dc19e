package consumer

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// views are all partitions of a group: those that this process owns, and as a visit the others, read without joining.
type views struct {
	All   []*member
	late  bool   // this process has not read all that was published before the look
	Close func() // ends the look
}

// Sure says why it is not sure that a message which was not found is not there, or nil.
func (vs *views) Sure() error {
	if !vs.late {
		return nil
	}
	return driver.NewError(driver.ErrNotApplied, "the consumer in this process has not read all that is there",
		"try again", nil)
}

// parts are the partitions. The member of each is locked meanwhile.
func (vs *views) parts() iter.Seq[*partition] {
	return func(yield func(*partition) bool) {
		for _, m := range vs.All {
			m.mu.Lock()
			for _, p := range m.parts {
				if !yield(p) {
					m.mu.Unlock()
					return
				}
			}
			m.mu.Unlock()
		}
	}
}

// Look returns a group as it is now, with all that was published before the call, up to the window.
func (d *Groups) Look(ctx context.Context, t *registry.TopicState, group string) (vs *views, err error) {
	if _, err := d.registry.Group(t.Name, group); err != nil {
		return nil, err
	}
	// Nobody of this process joins meanwhile: a visit may change what has no owner.
	release, err := d.cluster.Single(ctx, "member/"+t.Name+"/"+group)
	if err != nil {
		return nil, err
	}
	vs = &views{Close: release}
	for whole := false; !whole; {
		if whole, err = d.look(ctx, t, group, vs); err != nil {
			release()
			return nil, err
		}
	}
	return vs, nil
}

// look is one look at a group. It is whole unless a partition went from this process to another meanwhile: that is in
// none of the members.
func (d *Groups) look(ctx context.Context, t *registry.TopicState, group string, vs *views) (whole bool, err error) {
	ids, err := d.registry.PartitionsNow(ctx, t)
	if err != nil {
		return false, err
	}
	ends, err := d.cluster.AnsweredEnds(ctx, t.Main)
	if err != nil {
		return false, err
	}
	m, others := d.memberIn(t.Name, group), ids
	vs.All = nil
	if m != nil {
		vs.late = m.catchUp(ctx, ends)
		others, vs.All = m.without(ids), []*member{m}
	}
	if len(others) == 0 {
		return true, nil
	}
	busy, err := d.Consumers(ctx, t.Name, group)
	if err != nil {
		return false, err
	}
	v, err := d.visit(ctx, t, group, others, busy, ends)
	if err != nil {
		return false, err
	}
	vs.All = append(vs.All, v)
	return m == nil || !slices.ContainsFunc(m.without(ids), func(id int32) bool { return v.parts[id] == nil }), nil
}

// without are those of some partitions that this process does not own.
func (m *member) without(ids []int32) []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return m.parts[id] != nil })
}

// visit reads partitions of a group that this process does not own, up to some offsets or the window.
func (d *Groups) visit(ctx context.Context, t *registry.TopicState, group string, ids []int32, busy bool,
	ends map[int32]int64) (*member, error) {
	if err := d.cluster.StartClock(ctx); err != nil {
		return nil, err
	}
	row, _ := d.registry.Group(t.Name, group) // of one that has gone there is nothing to see
	v := d.newMember(t, group, row.Order)
	v.Visit, v.Busy, v.Generation = true, busy, -1 // it commits as nobody
	if n := int(slices.Max(ids)) + 1; n > t.Partitions {
		if err := d.cluster.Widen(ctx, v.retryName, n); err != nil {
			return nil, err
		}
	}
	at, err := d.registry.Committed(ctx, t, group)
	if err != nil {
		return nil, err
	}
	logEnds, err := d.cluster.AnsweredEnds(ctx, v.retryName)
	if err != nil {
		return nil, err
	}
	spans, logs := map[int32][2]int64{}, map[int32][2]int64{}
	for _, id := range ids {
		p := v.newPartition(id, committedAt(at, id))
		if err := p.checkLog(ctx); err != nil {
			return nil, err
		}
		v.parts[id] = p // nobody else knows us yet
		logs[id] = [2]int64{0, logEnds[id]}
		if from := p.done.Next; from < ends[id] {
			spans[id] = [2]int64{from, min(ends[id], from+cluster.WindowItems)}
		}
	}
	if err := d.cluster.ReadSpans(ctx, v.retryName, logs,
		func(r *kgo.Record) { v.parts[r.Partition].logChanged(r) }); err != nil {
		return nil, err
	}
	for _, p := range v.parts {
		if busy {
			break // while there is an owner, what it has committed is what others go by
		}
		if err := p.addStandIn(ctx); err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	for id, p := range v.parts {
		p.begin(ends[id])
	}
	v.mu.Unlock()
	if err := d.cluster.ReadSpans(ctx, v.mainName, spans, func(r *kgo.Record) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.parts[r.Partition].feed(v.decode(r))
	}); err != nil {
		return nil, err
	}
	v.mu.Lock()
	for _, p := range v.parts {
		p.release(p.done.Next)
	}
	if v.FoundBad = len(v.bad) > 0; busy {
		v.showLeased()
	}
	v.mu.Unlock()
	if !busy {
		v.quarantine(ctx)
		v.ringDue(time.Now())
	}
	return v, nil
}

// showLeased shows what the owner holds as in flight, and hides what is about to expire.
func (m *member) showLeased() {
	now := time.Now()
	for _, p := range m.parts {
		for it := range p.items.all() {
			switch {
			case it.expired(now):
				m.enter(it, gone)
				m.scheduled.Remove(&it.Node)
				p.items.drop(it)
			case p.done.Before[it.location()] == offsets.LeasedPart && it.state != inflight:
				m.withhold(it)
			}
		}
	}
}

// ErrTaken says that somebody joined the group while a visit changed it.
var ErrTaken = errors.New("a consumer joined meanwhile")

// Finish stores what was changed. A visit commits in any case: it is refused when the group has consumers.
func (m *member) Finish(ctx context.Context) error {
	err := cluster.Unsure("the change", m.commit(ctx, m.those(func(p *partition) bool {
		p.dirty = p.dirty || m.Visit
		return p.dirty
	})...))
	m.saver.flush(ctx) // a visit has nobody else who does
	if err != nil && m.Visit {
		return errors.Join(ErrTaken, err)
	}
	return err
}

// catchUp waits until what is before some offsets is in the queue, or the window is full. It does not wait for long,
// and says that it was too late then.
func (m *member) catchUp(ctx context.Context, ends map[int32]int64) (late bool) {
	ctx, cancel := context.WithTimeout(ctx, m.d.cluster.Settings.Session)
	defer cancel()
	return m.until(ctx, func() bool { // if it is late, what there is must do
		behind := !m.joined || len(m.coming) > 0
		for id, p := range m.parts {
			behind = behind || p.done.Next < ends[id] || len(p.pending) > 0
		}
		return !behind || m.full()
	}) != nil
}
