package engine

import (
	"context"
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
	for _, t := range e.allTopics() {
		if len(names) > 0 && !slices.Contains(names, t.name) {
			continue
		}
		t.mu.Lock()
		if !t.ended {
			info := driver.TopicInfo{Topic: t.name, Config: t.config, Paused: t.paused}
			for _, g := range t.groups {
				info.Groups = append(info.Groups, g.name)
			}
			infos = append(infos, info)
		}
		t.mu.Unlock()
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
	for _, t := range e.allTopics() {
		t.mu.Lock()
		if !t.ended {
			sum += t.stats.Bytes
		}
		t.mu.Unlock()
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
	t.unlock(now)
	if err != nil {
		return nil, err
	}
	entries, err := t.complete(views)
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
}

// complete reads what memory does not know, without the lock. What was removed meanwhile is left out.
func (t *topic) complete(views []view) ([]driver.Entry, error) {
	var rs []reading
	for i := range views {
		if views[i].onDisk {
			rs = append(rs, reading{seq: views[i].Ref.Pos})
		}
	}
	if len(rs) > 0 {
		if err := t.readAll(rs); err != nil {
			return nil, err
		}
	}
	entries := make([]driver.Entry, 0, len(views))
	for i := range views {
		v := &views[i]
		if v.onDisk {
			r := rs[0]
			if rs = rs[1:]; r.message == nil {
				continue
			}
			v.setMessage(r.message)
		}
		entries = append(entries, v.Entry)
	}
	return entries, nil
}

func (v *view) setMessage(m *driver.Message) {
	if v.edited != nil {
		overlay(m, v.edited)
	}
	v.Message = m
	if v.Dead != nil {
		v.Dead.Message = m.Clone()
	}
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
		v.DueAt = now.wall(it.since)
	case inflight:
		v.Instance = it.claim.s.o.Instance
	case dead:
		v.Dead = it.deadLetter()
	case done:
		if it.more != nil && it.more.ending.known {
			v.SettledAt, v.Took, v.Instance = now.wall(it.since), it.more.ending.took, it.more.ending.by
		}
	}
	return v
}
