package monitor

import "time"

// failures keeps the account of failures. Times are those of looks, so that a failure shorter than the time between two
// is not seen.
type failures struct {
	since   time.Time // when it began to look
	count   uint64
	last    time.Time     // begin of the last failure
	down    bool          // it lasts
	repair  time.Duration // of all failures that are over
	repairs uint64
}

// saw takes in the health at a time.
func (f *failures) saw(h Health, now time.Time) {
	switch bad := h.Status == Unhealthy; {
	case bad && !f.down:
		f.count++
		f.last, f.down = now, true
	case !bad && f.down:
		f.down = false
		f.repair += now.Sub(f.last)
		f.repairs++
	}
}

func (f *failures) report(now time.Time) Failures {
	out := Failures{Uptime: now.Sub(f.since), Count: f.count, Last: f.last, Down: f.down}
	lost := f.repair
	if f.down {
		lost += now.Sub(f.last)
	}
	if f.count > 0 {
		out.MTBF = (out.Uptime - lost) / time.Duration(f.count)
	}
	if f.repairs > 0 {
		out.MTTR = f.repair / time.Duration(f.repairs)
	}
	return out
}
