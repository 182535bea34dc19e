package redisshell

import (
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
)

var outcomes = [...]string{driver.Ack: "a", driver.Retry: "r", driver.Dead: "d", driver.Release: "l", driver.Drop: "x"}

// Outcome is that of a settlement, as scripts call it.
func Outcome(x *driver.Settlement) string {
	if x.Outcome == driver.Release && x.Unseen {
		return "u"
	}
	return outcomes[x.Outcome]
}

// Failure encodes that of a settlement, if it has one. The script adds when it was, and which attempt.
func Failure(x *driver.Settlement, instance string) []byte {
	if x.Failure == nil || x.Outcome != driver.Retry && x.Outcome != driver.Dead {
		return nil
	}
	f := driver.AppendFailure(nil, *x.Failure)[0]
	f.At, f.Attempt, f.Instance = time.Time{}, 0, instance
	return envelope.AppendHistory(nil, f)
}
