package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Commands lie in a bucket of their own: <name>/<incarnation>/<id> is a command, and then its answer, in place; a write
// of <name>/<incarnation> tells the member that there is one.
const commandsBucket = driver.CommandsBucket

const (
	// AnswerWithin is how long Tell waits for an answer.
	AnswerWithin = 5 * time.Second

	commandTTL = time.Minute // of a command whose teller died, and of an answer
	bellTTL    = time.Hour
)

// letter is a command, or its answer.
type letter struct {
	Command
	Answered bool   `json:"answered,omitempty"`
	Kind     string `json:"kind,omitempty"` // of the error; empty: it was obeyed
	Text     string `json:"text,omitempty"`
	Hint     string `json:"hint,omitempty"`
}

// Tell has a member obey a command, and returns when it has, or why it did not. The member is its name, or
// name/incarnation where two living ones share it.
//
// ErrNotFound says that no such member lives, or that it has no such handler or message; ErrConflict that the name is
// shared, or that the worker's Scaling decides; ErrNotApplied that the member did not answer within AnswerWithin: the
// command is withdrawn then.
func Tell(ctx context.Context, b *ferry.Broker, member string, c Command) error {
	if b == nil {
		return driver.NewError(ferry.ErrInvalid, "the broker is nil", "open one first, with open.URL for example", nil)
	}
	if err := c.check(); err != nil {
		return err
	}
	kv := b.Driver().KV()
	to, err := find(ctx, kv, member)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	t := telling{kv: kv, to: to, name: to.Name + "/" + to.Incarnation + "/" + newToken()}
	if err := t.send(ctx, c); err != nil {
		return err
	}
	return t.await(ctx)
}

// Find returns the one living member that is meant by its name, or by name/incarnation where two share it. ErrNotFound
// says that there is none, ErrConflict that there are several.
func Find(ctx context.Context, b *ferry.Broker, member string) (Info, error) {
	if b == nil {
		return Info{}, driver.NewError(ferry.ErrInvalid, "the broker is nil",
			"open one first, with open.URL for example", nil)
	}
	return find(ctx, b.Driver().KV(), member)
}

func find(ctx context.Context, kv driver.KV, member string) (Info, error) {
	name, incarnation, _ := strings.Cut(member, "/")
	if err := driver.CheckName("member", name); err != nil {
		return Info{}, err
	}
	all, err := members(ctx, kv, name+"/")
	if err != nil {
		return Info{}, err
	}
	var fits []Info
	for _, i := range all {
		if incarnation == "" || i.Incarnation == incarnation {
			fits = append(fits, i)
		}
	}
	switch len(fits) {
	case 1:
		return fits[0], nil
	case 0:
		return Info{}, driver.NewError(ferry.ErrNotFound, fmt.Sprintf("there is no member %q", member),
			"'ferry worker ls' lists those that live", nil)
	}
	return Info{}, driver.NewError(ferry.ErrConflict, fmt.Sprintf("%d living members are called %q", len(fits), name),
		fmt.Sprintf("say which: %s, %s, ...", fits[0].Member(), fits[1].Member()), nil)
}

// telling is one command on its way.
type telling struct {
	kv       driver.KV
	to       Info
	name     string
	revision uint64
}

// send lays the command where the member finds it.
func (t *telling) send(ctx context.Context, c Command) error {
	data, _ := json.Marshal(letter{Command: c}) // which cannot fail
	bell := t.to.Name + "/" + t.to.Incarnation
	r, err := t.write(ctx, driver.Write{Name: t.name, Data: data, TTL: commandTTL, Request: newToken()})
	if err != nil {
		return err
	}
	t.revision = r.Revision
	_, err = t.write(ctx, driver.Write{Name: bell, TTL: bellTTL, Request: newToken()})
	return err
}

// write applies a write, under its request until it is answered.
func (t *telling) write(ctx context.Context, w driver.Write) (driver.WriteResult, error) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		r := t.kv.Apply(ctx, commandsBucket, driver.KVOptions{}, w)[0]
		if r.Err == nil || permanent(r.Err) || !sleep(ctx, pause) {
			return r, r.Err
		}
	}
}

// await returns the answer. A command that is not answered is withdrawn.
func (t *telling) await(ctx context.Context) error {
	for after := t.revision; ; {
		v, err := t.kv.Wait(ctx, commandsBucket, t.name, after)
		switch {
		case err == nil && v.Revision != 0:
			if l, ok := answered(v); ok {
				t.tidy(ctx, v)
				return l.err()
			}
			after = v.Revision
		case err == nil, ctx.Err() != nil:
			return t.withdraw(context.WithoutCancel(ctx))
		case permanent(err) || !sleep(ctx, firstPause):
			return err
		}
	}
}

// withdraw takes an unanswered command back, unless it is answered at the last moment.
func (t *telling) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	r := t.kv.Apply(ctx, commandsBucket, driver.KVOptions{},
		driver.Write{Name: t.name, Delete: true, If: driver.Condition(t.revision), Request: newToken()})[0]
	if errors.Is(r.Err, ferry.ErrConflict) && r.Revision != 0 {
		if l, ok := answered(r.Value); ok {
			return l.err()
		}
	}
	kind, text := ferry.ErrNotApplied, "the command is withdrawn"
	if r.Err != nil {
		kind, text = ferry.ErrUnknown, "it may still obey"
	}
	return driver.NewError(kind, fmt.Sprintf("member %q did not answer within %v; %s", t.to.Name, AnswerWithin, text),
		"see in 'ferry worker ls' whether it lives; one that is paused or cut off does not answer", nil)
}

// tidy removes an answer that was read. Otherwise it ends by itself.
func (t *telling) tidy(ctx context.Context, v driver.Value) {
	t.kv.Apply(ctx, commandsBucket, driver.KVOptions{}, driver.Write{Name: v.Name, Delete: true})
}

func answered(v driver.Value) (l letter, ok bool) {
	ok = json.Unmarshal(v.Data, &l) == nil && l.Answered
	return l, ok
}

// kinds are those of answers.
var kinds = map[string]error{"not_found": ferry.ErrNotFound, "conflict": ferry.ErrConflict, "invalid": ferry.ErrInvalid,
	"closed": ferry.ErrClosed}

// err is what an answer says.
func (l letter) err() error {
	if l.Kind == "" {
		return nil
	}
	kind := kinds[l.Kind]
	if kind == nil {
		kind = ferry.ErrRefused
	}
	return driver.NewError(kind, l.Text, l.Hint, nil)
}
