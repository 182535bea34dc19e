package redisconn

import (
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// maxMS is the latest time that can be said: numbers below 1e14 are exact in scripts.
const maxMS = 90_000_000_000_000

// DelayText tells a script when a message is due: after a time, "@" a moment, "h" for held, or "" for now.
func DelayText(m *driver.Message) string {
	switch {
	case m.Delay == driver.Hold:
		return "h"
	case !m.At.IsZero():
		ms := min(max(m.At.UnixMilli(), 0), maxMS)
		if m.At.Nanosecond()%int(time.Millisecond) != 0 {
			ms++ // never early
		}
		return "@" + strconv.FormatInt(ms, 10)
	case m.Delay > 0:
		return strconv.FormatInt(Milliseconds(m.Delay), 10)
	}
	return ""
}

// Milliseconds rounds up: nothing is ever early.
func Milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return (int64(d)-1)/int64(time.Millisecond) + 1
}
