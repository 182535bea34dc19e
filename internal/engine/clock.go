package engine

import (
	"math"
	"time"
)

// tick is the engine's own time: nanoseconds of the monotonic clock since the engine was made.
type tick int64

const never tick = math.MaxInt64

// moment is one reading of the clock, as a wall time and as a tick.
type moment struct {
	at   time.Time
	tick tick
}

// now reads the clock. Where time is compared with what others did it is read under the lock of the topic: a caller
// that waited for the lock would otherwise act in the past.
func (e *Engine) now() moment {
	at := time.Now()
	return moment{at: at, tick: tick(at.Sub(e.base))}
}

// after returns the tick d later; a time too far away is as far as can be said, but not never.
func (m moment) after(d time.Duration) tick { return m.plus(max(0, d)) }

// of returns the tick of a wall time, as seen now. It may be before the engine was made.
func (m moment) of(wall time.Time) tick { return m.plus(wall.Sub(m.at)) }

// plus is after, for a time that may be in the past.
func (m moment) plus(d time.Duration) tick {
	if d > 0 && tick(d) > never-1-m.tick {
		return never - 1
	}
	return m.tick + tick(d)
}

// wall returns the wall time of t, as seen now.
func (m moment) wall(t tick) time.Time {
	if t == never {
		return time.Time{}
	}
	return m.at.Add(time.Duration(t - m.tick)).Round(0)
}

// stamp returns a tick as it is stored: as wall time in nanoseconds, and zero for never.
func (m moment) stamp(t tick) int64 {
	if t == never {
		return 0
	}
	at, d := m.at.UnixNano(), int64(t-m.tick)
	if d > math.MaxInt64-at {
		return math.MaxInt64
	}
	return at + d
}

// read undoes stamp, as seen now.
func (m moment) read(stamp int64) tick {
	if stamp == 0 {
		return never
	}
	return m.plus(time.Duration(stamp - m.at.UnixNano()))
}
