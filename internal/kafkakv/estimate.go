package kafkakv

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// estimate is what time it is at the leader: at least that of a record, and what has passed since it came. It is never
// ahead, but for a clock that was set back. No verdict goes by it.
type estimate struct {
	at    time.Time // of a record
	since time.Time // when it came, by this machine's monotonic clock
	epoch int32
}

// estimateAge is after how long a newer record is believed even if it says less.
const estimateAge = 5 * time.Minute

// see is told of a record that has come.
func (e *estimate) see(r *kgo.Record, now time.Time) {
	if e.since.IsZero() || r.LeaderEpoch != e.epoch || now.Sub(e.since) > estimateAge || r.Timestamp.After(e.now(now)) {
		e.at, e.since, e.epoch = r.Timestamp, now, r.LeaderEpoch
	}
}

func (e *estimate) now(now time.Time) time.Time {
	if e.since.IsZero() {
		return time.Time{}
	}
	return e.at.Add(now.Sub(e.since))
}
