package engine

import (
	"context"

	"github.com/ferrymq/ferry/driver"
)

// Topics returns the topics in order of their names.
func (e *Engine) Topics(context.Context) ([]driver.TopicInfo, error) {
	if e.isClosed() {
		return nil, errClosed()
	}
	var infos []driver.TopicInfo
	for _, t := range e.allTopics() {
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
	now := e.now()
	t, err := e.lockExisting(topic, now)
	if err != nil {
		return driver.TopicStats{}, err
	}
	defer t.unlock(now)
	return t.statistics(now), nil
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
func (e *Engine) Get(_ context.Context, target driver.Target) ([]driver.Entry, error) {
	now := e.now()
	t, err := e.lockExisting(target.Topic, now)
	if err != nil {
		return nil, err
	}
	defer t.unlock(now)
	en, err := t.find(target)
	if err != nil {
		return nil, err
	}
	if en.state != fanned {
		return []driver.Entry{t.view(en, now)}, nil
	}
	if target.Group != "" {
		it, err := t.findItem(en, target)
		if err != nil {
			return nil, err
		}
		return []driver.Entry{it.view(now)}, nil
	}
	var views []driver.Entry
	for _, g := range t.groups {
		if it := en.item(g); it != nil {
			views = append(views, it.view(now))
		}
	}
	return views, nil
}

var entryStates = map[entryState]driver.State{delayed: driver.StateDelayed, held: driver.StateHeld, invalid: driver.StateInvalid}

// view shows a message that belongs to the topic.
func (t *topic) view(e *entry, now moment) driver.Entry {
	v := driver.Entry{Ref: e.ref(), State: entryStates[e.state], ExpiresAt: now.wall(e.expires)}
	switch e.state {
	case invalid:
		v.Raw, v.Problem = append([]byte(nil), e.extra.raw...), e.extra.problem
		return v
	case delayed:
		v.DueAt = now.wall(e.due)
	}
	v.Message = e.message(t.name, e)
	return v
}

var itemStates = [...]driver.State{ready: driver.StateReady, inflight: driver.StateInflight, waiting: driver.StateWaiting,
	dead: driver.StateDead, done: driver.StateDone}

// String returns the state as the seam calls it.
func (s itemState) String() string { return string(itemStates[s]) }

// view shows a message as a group sees it.
func (it *item) view(now moment) driver.Entry {
	v := driver.Entry{
		Message: it.e.message(it.g.t.name, it.content()), Ref: it.e.ref(), Group: it.g.name, State: itemStates[it.state],
		Attempt: int(it.failures) + 1, Deliveries: int(it.lost) + 1, ExpiresAt: now.wall(it.e.expires),
	}
	if x := it.e.extra; x != nil && x.raw != nil { // not looked at yet: shown as it is
		v.Raw, v.Body = append([]byte(nil), x.raw...), append([]byte(nil), x.raw...)
	}
	if it.more != nil {
		v.History = append([]driver.Failure(nil), it.more.history...)
	}
	switch it.state {
	case waiting:
		v.DueAt = now.wall(it.since)
	case inflight:
		v.Instance = it.claim.s.o.Instance
	case dead:
		v.Dead = it.deadLetter()
	}
	return v
}
