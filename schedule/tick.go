package schedule

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Topic is the internal topic of ticks: the next one of each schedule is a delayed message in it. Pausing it pauses all
// schedules.
const Topic = "ferry.schedules"

// dedupFor is how long the broker knows that a tick was published: far longer than a tick that may have been is tried
// again.
const dedupFor = time.Hour

// tick is what a message of Topic says: that a revision of a schedule ticks.
type tick struct {
	Name     string `json:"name"`
	Revision uint64 `json:"revision"`
	At       int64  `json:"at"` // milliseconds since 1970
}

// tickID is the id of the message of a tick. Each revision has its own: those of an older one are forgotten when they
// are due.
func tickID(name string, revision uint64, at time.Time) string {
	return driver.EmitID(fmt.Sprintf("tick/%s/%d/%d", name, revision, at.UnixMilli()), 0)
}

// fireID is the id of the user's message of a tick, whichever revision it is of: a tick that crosses an edit fires
// once.
func fireID(name string, epoch uint64, at time.Time) string {
	return driver.EmitID(fmt.Sprintf("fire/%s/%d/%d", name, epoch, at.UnixMilli()), 0)
}

// message returns the message of a tick of d.
func (d *definition) message(at time.Time) *driver.Message {
	body, err := json.Marshal(tick{Name: d.Name, Revision: d.revision, At: at.UnixMilli()})
	if err != nil {
		panic(err) // a struct of texts and numbers
	}
	return &driver.Message{ID: tickID(d.Name, d.revision, at), OwnID: true, Topic: Topic, Key: d.Name, Body: body,
		ContentType: "application/json", At: d.due(at)}
}

// fired returns the user's message of a tick.
func fired(s *Schedule, epoch uint64, at time.Time) *ferry.Message {
	m := s.Message.Clone()
	m.Headers = maps.Clone(m.Headers)
	if m.Headers == nil {
		m.Headers = map[string]string{}
	}
	m.Headers[HeaderName], m.Headers[HeaderTick] = s.Name, at.UTC().Format(time.RFC3339Nano)
	m.ID, m.OwnID = fireID(s.Name, epoch, at), true
	if m.DedupID == "" {
		m.DedupID, m.DedupWindow = m.ID, dedupFor
	}
	return m
}
