package redisshell

import (
	"fmt"

	"github.com/ferrymq/ferry/driver"
)

// verdicts are why a script has not changed a message.
var verdicts = map[string]struct {
	kind       error
	text, hint string
}{
	"pending": {driver.ErrNotFound, "belongs to the topic, not to a group", "leave the group out"},
	"group":   {driver.ErrInvalid, "belongs to groups, and none is named", "name the group"},
	"settled": {driver.ErrConflict, "is not dead in this group, or not settled in the other one",
		"only dead letters go to another group, and only where that group has settled the message"},
	"flying": {driver.ErrConflict, "is in flight", "try again when its consumer has settled it"},
	"conflict": {driver.ErrConflict, "is in flight or ready",
		"only dead letters, waiting, delayed, held and invalid messages can be moved"},
	"invalid": {driver.ErrInvalid, "cannot be decoded", "give its content in Edit, or delete it"},
}

// Verdict turns the answer of a script that was to change a message into an error, or nil if it has. Whatever else it
// may answer is the caller's to know.
func Verdict(target driver.Target, answer string) (known bool, err error) {
	switch answer {
	case "ok":
		return true, nil
	case "outlived":
		return true, target.Outlived()
	}
	v, known := verdicts[answer]
	return known, driver.NewError(v.kind, "message "+describe(target)+" "+v.text, v.hint, nil)
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
