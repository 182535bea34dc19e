package redisconn

import (
	"strconv"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// maxMS is the latest time that can be said, in the year 4821: numbers below 1e14 are exact in scripts.
const maxMS = 90_000_000_000_000

// DelayText tells a script when a message is due: after a time, "@" a moment, "h" for held, or "" for now.
func DelayText(m *driver.Message) string {
	switch {
	case m.Delay == driver.Hold:
		return "h"
	case !m.At.IsZero():
		return "@" + strconv.FormatInt(Moment(m.At), 10)
	case m.Delay > 0:
		return strconv.FormatInt(Milliseconds(m.Delay), 10)
	}
	return ""
}

// Moment is a time in milliseconds, rounded up so that nothing is early. What is later than can be said is due then.
func Moment(at time.Time) int64 {
	switch {
	case !at.After(time.UnixMilli(0)):
		return 0
	case !at.Before(time.UnixMilli(maxMS)): // or the milliseconds might not fit their type
		return maxMS
	}
	return at.Add(time.Millisecond - 1).UnixMilli()
}

// Milliseconds rounds up: nothing is ever early.
func Milliseconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return (int64(d)-1)/int64(time.Millisecond) + 1
}

// Wall is a time that a script tells in milliseconds. What is none, or 0, is no time.
func Wall(ms string) time.Time {
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}
