package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/refusal"
)

// Topics returns the topics in order of their names.
func (e *Engine) Topics(_ context.Context, names ...string) ([]driver.TopicInfo, error) {
	if e.isClosed() {
		return nil, refusal.Closed()
	}
	var infos []driver.TopicInfo
	for t := range e.living() {
		if len(names) > 0 && !slices.Contains(names, t.name) {
			continue
		}
		info := driver.TopicInfo{Topic: t.name, Config: t.config, Paused: t.paused}
		for _, g := range t.groups {
			info.Groups = append(info.Groups, g.name)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// Stats returns exact counts.
func (e *Engine) Stats(_ context.Context, topic string) (driver.TopicStats, error) {
	if err := driver.CheckName("topic", topic); err != nil {
		return driver.TopicStats{}, err
	}
	now := e.now()
	t, err := e.lockExisting(topic, now)
	if err != nil {
		return driver.TopicStats{}, err
	}
	defer t.unlock(now)
	return t.statistics(now), nil
}

// Bytes is the size of all that an engine holds, bodies and headers.
func Bytes(e *Engine) (sum int64, err error) {
	if e.isClosed() {
		return 0, refusal.Closed()
	}
	for t := range e.living() {
		sum += t.stats.Bytes
	}
	return sum, nil
}

func (t *topic) statistics(now moment) driver.TopicStats {
	s := t.stats
	s.Topic, s.Paused = t.name, t.paused
	s.Groups = make([]driver.GroupStats, len(t.groups))
	for i, g := range t.groups {
		s.Groups[i] = g.statistics(now)
	}
	return s
}

// Get returns a message as every group sees it.
func (e *Engine) Get(ctx context.Context, target driver.Target) ([]driver.Entry, error) {
	if err := target.Check(); err != nil {
		return nil, err
	}
	now := e.now()
	t, err := e.lockReaching(ctx, target, now)
	if err != nil {
		return nil, err
	}
	views, err := t.look(target, now)
	r := t.unlock(now)
	if err != nil {
		return nil, err
	}
	entries, err := t.complete(ctx, r, views)
	if err == nil && len(entries) == 0 && len(views) > 0 {
		err = t.errNoMessage(target) // it was removed just now
	}
	return entries, err
}

// look returns what a target names, as far as memory knows it.
func (t *topic) look(target driver.Target, now moment) ([]view, error) {
	en, err := t.find(target)
	if err != nil {
		return nil, err
	}
	if en.state != fanned {
		return []view{t.view(en, now)}, nil
	}
	if target.Group != "" {
		it, err := t.findItem(en, target)
		if err != nil {
			return nil, err
		}
		return []view{it.view(now)}, nil
	}
	var views []view
	for _, g := range t.groups {
		if it := en.item(g); it != nil {
			views = append(views, it.view(now))
		}
	}
	return views, nil
}

// view is what memory knows of an entry. The content of one that is onDisk is still to be read; edited replaces it.
type view struct {
	driver.Entry
	onDisk bool
	edited *entry
	cold   bool   // if it is there at all
	since  uint64 // what became ready up to this place is not asked for
}

// complete reads what memory does not know, without the lock; what is cold, once everything up to a round is readable.
// What was removed meanwhile is left out.
func (t *topic) complete(ctx context.Context, before Round, views []view) ([]driver.Entry, error) {
	var seqs []uint64
	anyCold := false
	for i := range views {
		if views[i].onDisk {
			seqs = append(seqs, views[i].Ref.Pos)
			anyCold = anyCold || views[i].cold
		}
	}
	if anyCold {
		if err := t.e.outcome(ctx, before, false); err != nil {
			return nil, err
		}
	}
	read, err := t.readAll(seqs)
	if err != nil {
		return nil, err
	}
	entries := make([]driver.Entry, 0, len(views))
	for i := range views {
		v := &views[i]
		if v.onDisk {
			f := &read[0]
			if read = read[1:]; errors.Is(f.problem, errMissing) || v.cold && v.since >= f.head.fan {
				continue
			}
			v.setFound(f, t.name)
		}
		entries = append(entries, v.Entry)
	}
	return entries, nil
}

func (v *view) setFound(f *found, topic string) {
	if v.Message = f.message; f.message == nil {
		v.Message, v.Raw = &driver.Message{Topic: topic, Body: f.raw}, f.raw
	}
	if v.edited != nil {
		overlay(v.Message, v.edited)
	}
	if v.Dead != nil {
		v.Dead.Message = v.Message.Clone()
	}
}

// coldView shows a place of the log where something may be cold: to a group, or as the topic has it.
func coldView(seq uint64, g *group) view {
	v := view{onDisk: true, cold: true, Entry: driver.Entry{Ref: driver.Ref{Pos: seq}}}
	if g != nil {
		v.since = g.since
		v.Group, v.State, v.Attempt, v.Deliveries = g.name, driver.StateReady, 1, 1
	}
	return v
}

var entryStates = map[entryState]driver.State{delayed: driver.StateDelayed, held: driver.StateHeld,
	invalid: driver.StateInvalid}

// view shows a message that belongs to the topic.
func (t *topic) view(e *entry, now moment) view {
	v := view{Entry: driver.Entry{Ref: e.ref(), State: entryStates[e.state], ExpiresAt: now.wall(e.expires())},
		onDisk: e.is(onDisk)}
	switch e.state {
	case invalid:
		v.Raw, v.Problem = append([]byte(nil), e.extra.raw...), e.extra.problem
		if e.extra.found != 0 {
			v.FoundAt = time.Unix(0, e.extra.found)
		}
		return v
	case delayed:
		v.DueAt = now.wall(e.due)
	}
	v.Attempt, v.Deliveries = 1, 1
	v.Message = e.message(t.name, e)
	v.setUndecoded(e)
	return v
}

// setUndecoded shows what was not decoded yet as it is.
func (v *view) setUndecoded(e *entry) {
	if x := e.extra; x != nil && x.raw != nil {
		v.Raw, v.Body = append([]byte(nil), x.raw...), append([]byte(nil), x.raw...)
	}
}

var itemStates = [...]driver.State{ready: driver.StateReady, inflight: driver.StateInflight,
	waiting: driver.StateWaiting,
	dead:    driver.StateDead, done: driver.StateDone}

// String returns the state as the seam calls it.
func (s itemState) String() string { return string(itemStates[s]) }

// view shows a message as a group sees it.
func (it *item) view(now moment) view {
	v := view{onDisk: it.e.is(onDisk), Entry: driver.Entry{
		Message: it.e.message(it.g.t.name, it.content()), Ref: it.e.ref(), Group: it.g.name, State: itemStates[it.state],
		Attempt: int(it.failures) + 1, Deliveries: int(it.lost) + 1, ExpiresAt: now.wall(it.e.expires()),
	}}
	v.setUndecoded(it.e)
	if it.more != nil {
		v.History = append([]driver.Failure(nil), it.more.history...)
		v.edited = it.more.edited
	}
	switch it.state {
	case waiting:
		v.DueAt = now.wall(it.at)
	case inflight:
		v.Instance = it.claim.s.o.Instance
	case dead:
		v.Dead = it.deadLetter()
	case done:
		if it.more != nil && it.more.ending.known {
			v.SettledAt, v.Took, v.Instance = now.wall(it.at), it.more.ending.took, it.more.ending.by
		}
	}
	return v
}
