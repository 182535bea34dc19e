package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/worker"
)

// obey does what commands say until ctx ends. It waits on one value of its own, which every command writes.
func (m *Member) obey(ctx context.Context) error {
	for after := uint64(0); ; {
		err := m.obeyAll(ctx)
		if err == nil {
			var bell driver.Value
			bell, err = m.kv.Wait(ctx, commandsBucket, m.value(), after)
			if err == nil {
				after = bell.Revision
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && permanent(err):
			return err
		case err != nil && !sleep(ctx, lastPause):
			return nil
		}
	}
}

// obeyAll obeys and answers each command that lies there.
func (m *Member) obeyAll(ctx context.Context) error {
	values, err := listAll(ctx, m.kv, commandsBucket, m.value()+"/")
	if err != nil {
		return err
	}
	for _, v := range values {
		var l letter
		if err := json.Unmarshal(v.Data, &l); err != nil || l.Answered {
			continue
		}
		err := m.do(l.Command)
		m.log.InfoContext(ctx, "a command was given", "member", m.self.Name, "command", l.Do, "topic", l.Topic, "group",
			l.Group, "id", l.ID, "error", err)
		m.beat(ctx)                          // who asks after the answer sees what has changed
		data, _ := json.Marshal(answer(err)) // which cannot fail
		r := m.kv.Apply(ctx, commandsBucket, driver.KVOptions{},
			driver.Write{Name: v.Name, Data: data, TTL: commandTTL, If: driver.Condition(v.Revision)})[0]
		if r.Err != nil && !errors.Is(r.Err, ferry.ErrConflict) { // withdrawn meanwhile
			return r.Err
		}
	}
	return nil
}

// answer is what is told of a command that ended so.
func answer(err error) letter {
	l := letter{Answered: true}
	if err == nil {
		return l
	}
	l.Kind, l.Text = "refused", err.Error()
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			l.Kind = name
		}
	}
	var known *driver.Error
	if errors.As(err, &known) {
		l.Text, l.Hint = known.Text, known.Hint
	}
	return l
}

// do obeys one command.
func (m *Member) do(c Command) error {
	if err := c.check(); err != nil {
		return err
	}
	var meant []*worker.Worker
	for _, w := range m.o.Workers {
		if c.Worker == "" || w.Stats().Instance == c.Worker {
			meant = append(meant, w)
		}
	}
	if len(meant) == 0 {
		return m.lacks(fmt.Sprintf("worker %q", c.Worker))
	}
	switch c.Do {
	case Quiet, Resume:
		return m.rest(meant, c)
	case Scale:
		if len(meant) > 1 {
			return driver.NewError(ferry.ErrConflict, fmt.Sprintf("member %q has %d workers", m.self.Name, len(meant)),
				"name the worker: 'ferry worker show' lists them", nil)
		}
		return meant[0].SetConcurrency(c.Concurrency)
	}
	for _, w := range meant {
		if w.Cancel(c.Topic, c.Group, c.ID) {
			return nil
		}
	}
	return m.lacks(fmt.Sprintf("message %q of topic %q, group %q", c.ID, c.Topic, c.Group))
}

// rest makes handlers quiet, or lets them go on. It succeeds if one worker has such a handler.
func (m *Member) rest(meant []*worker.Worker, c Command) error {
	var failed error
	found := false
	for _, w := range meant {
		switch err := w.Quiet(c.Topic, c.Group, c.Do == Quiet); {
		case err == nil:
			found = true
		case !errors.Is(err, ferry.ErrNotFound):
			failed = err
		}
	}
	if failed == nil && !found {
		return m.lacks(fmt.Sprintf("handler of topic %q, group %q", c.Topic, c.Group))
	}
	return failed
}

func (m *Member) lacks(what string) error {
	return driver.NewError(ferry.ErrNotFound, fmt.Sprintf("member %q has no %s", m.self.Name, what),
		"see 'ferry worker show "+m.self.Name+"'", nil)
}
