package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

const targetHelp = `A message is named by its id, or by its ref (0-42), which the listings show. Where an id looks
like a ref, say which one you mean: id:0-42 or ref:0-42.`

// located is a message that an operator named, as every group sees it.
type located struct {
	name   string
	target driver.Target
	views  []driver.Entry
}

// locate finds the message that an operator named. A name that fits two messages is refused.
func locate(ctx context.Context, d driver.Inspector, topic, name string) (located, error) {
	var found []located
	var missing error
	for _, target := range targets(topic, name) {
		views, err := d.Get(ctx, target)
		switch {
		case errors.Is(err, ferry.ErrNotFound):
			missing = err
		case err != nil:
			return located{}, err
		default:
			found = append(found, located{name: name, target: target, views: views})
		}
	}
	switch {
	case len(found) == 0:
		return located{}, missing
	case len(found) == 2 && found[0].views[0].Ref != found[1].views[0].Ref:
		return located{}, usage(fmt.Sprintf("%q is the ref of one message and the id of another", name),
			"write ref:"+name+" or id:"+name)
	}
	return found[0], nil
}

// locateAll finds all messages, or fails before anything is done.
func locateAll(ctx context.Context, d driver.Inspector, topic string, names []string) ([]located, error) {
	all := make([]located, len(names))
	var problem error
	for i, name := range names {
		var err error
		all[i], err = locate(ctx, d, topic, name)
		problem = errors.Join(problem, err)
	}
	return all, problem
}

// targets returns what a name may mean: a ref before an id.
func targets(topic, name string) []driver.Target {
	if id, ok := strings.CutPrefix(name, "id:"); ok {
		return []driver.Target{{Topic: topic, ID: id}}
	}
	text, only := strings.CutPrefix(name, "ref:")
	ref, err := driver.ParseRef(text)
	switch {
	case err != nil || ref.IsZero():
		return []driver.Target{{Topic: topic, ID: name}}
	case only:
		return []driver.Target{{Topic: topic, Ref: ref}}
	}
	return []driver.Target{{Topic: topic, Ref: ref}, {Topic: topic, ID: name}}
}

// in returns the view of the message in one of these states: that of the group, or without one the only there is.
func (l located) in(group string, states ...driver.State) (driver.Entry, error) {
	var fits []driver.Entry
	var others []string
	for _, v := range l.views {
		switch {
		case group != "" && v.Group != group && v.Group != "":
		case slices.Contains(states, v.State):
			fits = append(fits, v)
		default:
			others = append(others, describeState(v))
		}
	}
	switch {
	case len(fits) == 1:
		return fits[0], nil
	case len(fits) > 1:
		return driver.Entry{}, usage(fmt.Sprintf("message %s is %s in %d groups", l.name, fits[0].State, len(fits)),
			"name one with --group")
	case len(others) > 0:
		return driver.Entry{}, driver.NewError(driver.ErrConflict,
			fmt.Sprintf("message %s is %s", l.name, strings.Join(others, ", ")),
			"this works on messages that are "+join(states), nil)
	}
	return driver.Entry{}, driver.NewError(driver.ErrNotFound, fmt.Sprintf("group %q has no message %s", group, l.name),
		"leave --group out to find it in any group", nil)
}

// targetIn returns the target of a view of the message.
func (l located) targetIn(v driver.Entry) driver.Target {
	t := l.target
	t.Group = v.Group
	return t
}

func describeState(v driver.Entry) string {
	if v.Group == "" {
		return string(v.State)
	}
	return fmt.Sprintf("%s in group %s", v.State, v.Group)
}

func join(states []driver.State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, " or ")
}

// outcome is what became of one message that was named.
type outcome struct {
	Message string `json:"message"`
	Group   string `json:"group,omitempty"`
	Result  string `json:"result"`
}

// outcomes prints what was done to each message, and returns what failed.
func (r *remote) outcomes(verb string, targets []driver.Target, names []string, errs []error) error {
	l := newListing(r, []column[outcome]{
		{cell: func(o outcome) any { return o.Result }},
		{cell: func(o outcome) any { return o.Message }},
		{cell: func(o outcome) any { return o.Group }},
	})
	l.live = true
	var failed error
	for i, err := range errs {
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", names[i], err))
			continue
		}
		if err := l.add(outcome{Message: names[i], Group: targets[i].Group, Result: verb}); err != nil {
			return err
		}
	}
	return errors.Join(l.end(""), failed)
}
