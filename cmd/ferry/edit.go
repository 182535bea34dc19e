package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/ferrymq/ferry/driver"
)

// moveFlags are those of commands that make messages due: when, and with what changes.
type moveFlags struct {
	delay   time.Duration
	content contentFlags
	body    bodyFlags
}

func (m *moveFlags) add(f *pflag.FlagSet) {
	f.DurationVar(&m.delay, "delay", 0, "due this long from now (default: at once)")
	m.content.add(f)
	m.body.add(f)
	onlyOnCommandLine(f, "delay")
}

// editing tells whether the content of messages changes.
func (m moveFlags) editing(f *pflag.FlagSet) bool {
	return m.body.given(f) || f.Changed("key") || f.Changed("content-type") || f.Changed("header") || f.Changed("priority")
}

// check says what is wrong before anything is opened.
func (m moveFlags) check(f *pflag.FlagSet, messages int) error {
	switch {
	case m.delay < 0:
		return usage(fmt.Sprintf("--delay %v is negative", m.delay), "leave it out to make the message due at once")
	case m.editing(f) && messages != 1:
		return usage("only one message can be changed at a time", "name one message, or leave --body, --file, --key, "+
			"--header, --priority and --content-type out")
	}
	return m.content.apply(f, &driver.Message{})
}

// edit returns what the message is replaced with, or nil if it stays as it is. Old is nil for one that never was.
func (m moveFlags) edit(ctx context.Context, s session, f *pflag.FlagSet, old *driver.Message) (*driver.Message,
	error) {
	if !m.editing(f) {
		return nil, nil
	}
	edit := &driver.Message{}
	if old != nil {
		edit = old.Clone()
	}
	if m.body.given(f) {
		body, err := m.body.read(ctx, s.process, f, s.driver.Capabilities().MaxBody)
		if err != nil {
			return nil, err
		}
		edit.Body, edit.ContentType = body, typeOf(body)
	}
	return edit, m.content.apply(f, edit)
}

// move makes the messages due, each in the group where it was found, and prints what became of each.
func (m moveFlags) move(ctx context.Context, s session, f *pflag.FlagSet, verb string, found []located,
	views []driver.Entry) error {
	moves := make([]driver.Move, len(found))
	targets, names := make([]driver.Target, len(found)), make([]string, len(found))
	for i, l := range found {
		edit, err := m.edit(ctx, s, f, views[i].Message)
		if err != nil {
			return err
		}
		targets[i], names[i] = l.targetIn(views[i]), l.name
		moves[i] = driver.Move{Target: targets[i], After: m.delay, Edit: edit}
	}
	return s.outcomes(verb, targets, names, s.driver.Move(ctx, moves))
}

// selected returns the view of each message in one of these states, or fails before anything is done.
func selected(ctx context.Context, s session, topic, group string, names []string, states ...driver.State) ([]located,
	[]driver.Entry, error) {
	found, err := locateAll(ctx, s.driver, topic, names)
	if err != nil {
		return nil, nil, err
	}
	views := make([]driver.Entry, len(found))
	for i, l := range found {
		if views[i], err = l.in(group, states...); err != nil {
			return nil, nil, err
		}
	}
	return found, views, nil
}
