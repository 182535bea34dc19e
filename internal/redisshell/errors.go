package redisshell

import (
	"fmt"
	"slices"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/refusal"
)

// unchanged are why a script has not changed a message.
var unchanged = map[string]struct {
	kind       error
	text, hint string
}{
	"pending": {driver.ErrNotFound, "belongs to the topic, not to a group", "leave the group out"},
	"group":   {driver.ErrInvalid, "belongs to groups, and none is named", "name the group"},
	"settled": {driver.ErrConflict, "is not dead in this group, or the other one is not done with it",
		"only dead letters go to another group, and only where it has settled the message, or come past where it deleted it"},
	"flying": {driver.ErrConflict, "is in flight", "try again when its consumer has settled it"},
	"conflict": {driver.ErrConflict, "is in flight or ready",
		"only dead letters, waiting, delayed, held and invalid messages can be moved"},
	"invalid": {driver.ErrInvalid, "cannot be decoded", "give its content in Edit, or delete it"},
}

// ErrUnchanged turns the answer of a script that was to change a message into an error, or nil if it has.
func ErrUnchanged(target driver.Target, answer string) error {
	switch why, known := unchanged[answer]; {
	case answer == "ok":
		return nil
	case answer == "outlived":
		return target.Outlived()
	case answer == "missing":
		return NoMessage(target)
	case known:
		return driver.NewError(why.kind, "message "+describe(target)+" "+why.text, why.hint, nil)
	}
	return redisconn.Reply{answer}.ErrShape("a change of one message")
}

// NoGroup says that a topic has no such group, and which ones it has, in whatever order.
func NoGroup(topic, name string, existing []string) error {
	return refusal.NoGroup(topic, name, slices.Sorted(slices.Values(existing)))
}

// NoMessage says that a topic does not have a message.
func NoMessage(target driver.Target) error {
	return driver.NewError(driver.ErrNotFound, fmt.Sprintf("topic %q has no message %s", target.Topic, describe(target)),
		"it was settled, deleted or expired", nil)
}

func describe(target driver.Target) string {
	if !target.Ref.IsZero() {
		return target.Ref.String()
	}
	return fmt.Sprintf("%q", target.ID)
}

// Each does something with each of a list, and returns what went wrong with each.
func Each[X any](list []X, do func(*X) error) []error {
	errs := make([]error, len(list))
	for i := range list {
		errs[i] = do(&list[i])
	}
	return errs
}
