package record

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

// DeadEntry is a dead letter as operators see it.
func DeadEntry(topic string, r *kgo.Record) (driver.Entry, bool) {
	dl, err := envelope.DecodeDeadLetter(r.Value)
	if err != nil {
		return driver.Entry{}, false
	}
	dl.Message.Topic = topic
	return driver.Entry{Message: dl.Message, Ref: dl.Origin.Ref, Group: dl.Origin.Group, State: driver.StateDead,
		Attempt: dl.Attempts + 1, Deliveries: dl.Deliveries, History: dl.History, Dead: dl}, true
}

// InvalidEntry is a broken record as operators see it.
func InvalidEntry(r *kgo.Record) (driver.Entry, bool) {
	s, ok := StateOf(r)
	return driver.Entry{Ref: s.Ref, State: driver.StateInvalid, Raw: bytes.Clone(r.Value),
		Problem: HeaderOf(r, ProblemHeader), FoundAt: r.Timestamp.UTC()}, ok
}

// ProblemHeader says why a record is among the invalid.
const ProblemHeader = "ferry-problem"

// DeadName names a message among the dead letters of a topic. The key of a dead letter has its round too: the end of a
// letter that was replayed must not be that of the one that came of it.
func DeadName(group, id string) string { return group + "/" + id }

// DeadKey is the key of a dead letter; see DeadName.
func DeadKey(group, id string, rounds int) string {
	if rounds == 0 {
		return DeadName(group, id)
	}
	return DeadName(group, id) + roundSeparator + strconv.Itoa(rounds)
}

// roundSeparator is in no id.
const roundSeparator = "\x00"

// DeadList splits the key of a dead letter into its group and its name.
func DeadList(key string) (group, name string) {
	name, _, _ = strings.Cut(key, roundSeparator)
	group, _, _ = strings.Cut(name, "/")
	return group, name
}
