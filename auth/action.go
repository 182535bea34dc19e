package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ferrymq/ferry/driver"
)

// Outcomes of an action.
const (
	Done   = "done"
	Failed = "failed"
	Denied = "denied"
)

// maxActionText is how many bytes of each text of an action are kept.
const maxActionText = 2 << 10

// Action is something that an operator did, or was not allowed to do.
type Action struct {
	// At is the clock of the process that recorded it. Defaults to now.
	At time.Time `json:"at"`
	// Who did it. Defaults to the identity in the context.
	Who string `json:"who"`
	// What was done: "topic.purge" for example.
	What    string `json:"what"`
	Topic   string `json:"topic,omitempty"`
	Group   string `json:"group,omitempty"`
	Filter  string `json:"filter,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Count   int64  `json:"count,omitempty"` // of messages, or of calls that were denied in a row
	Outcome string `json:"outcome"`         // Done, Failed or Denied. Defaults to Done
	// RequestID is the one in the context, by default.
	RequestID string `json:"request_id,omitempty"`
}

// texts are what an action says that others may have chosen.
func (a *Action) texts() []*string {
	return []*string{&a.Who, &a.What, &a.Topic, &a.Group, &a.Filter, &a.Detail, &a.Outcome, &a.RequestID}
}

// cut makes the texts short enough for a value, and valid: what is hashed must be what is read.
func (a *Action) cut() {
	for _, text := range a.texts() {
		*text = strings.ToValidUTF8(*text, "\uFFFD")
		if len(*text) <= maxActionText {
			continue
		}
		end := maxActionText
		for !utf8.RuneStart((*text)[end]) {
			end--
		}
		*text = (*text)[:end]
	}
}

// Recorded is an action as it lies in the broker.
type Recorded struct {
	Action
	// Sequence counts the actions, from 1.
	Sequence uint64 `json:"sequence"`
	// Before is the hash of the one before it, and BeforeAt the broker's time of that: it tells whether its absence is
	// by age.
	Before   string    `json:"before,omitempty"`
	BeforeAt time.Time `json:"before_at,omitzero"`
	// Hash is that of everything above.
	Hash string `json:"hash"`
}

// hash returns what Hash has to be.
func (r Recorded) hash() string {
	r.Hash = ""
	data, _ := json.Marshal(r) // times, texts and numbers: it cannot fail
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

const (
	actionsBucket = driver.AuthBucket + ".actions"
	actionPrefix  = "a/"
	cutName       = "cut"
)

// actionName returns the name of an action: the newest sorts first.
func actionName(sequence uint64) string {
	return fmt.Sprintf("%s%016x", actionPrefix, ^sequence)
}

func sequenceOf(name string) (uint64, error) {
	inverted, err := strconv.ParseUint(strings.TrimPrefix(name, actionPrefix), 16, 64)
	return ^inverted, err
}

// decodeAction reads a value, and says what is wrong with it as far as it alone tells.
func decodeAction(v driver.Value) (Recorded, error) {
	var r Recorded
	if err := json.Unmarshal(v.Data, &r); err != nil {
		return r, fmt.Errorf("action %s cannot be read", v.Name)
	}
	sequence, err := sequenceOf(v.Name)
	switch {
	case err != nil || sequence != r.Sequence:
		return r, fmt.Errorf("action %d lies under the name %s", r.Sequence, v.Name)
	case r.Hash != r.hash():
		return r, fmt.Errorf("action %d was changed: its hash is not that of what it says", r.Sequence)
	}
	return r, nil
}
