package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// definition is a schedule as it is stored, and what it means.
type definition struct {
	Schedule
	// first is the tick that this revision begins with; zero: the first after it was written.
	first    time.Time
	revision uint64
	epoch    uint64
	written  time.Time
	timing   timing
}

// record is the stored form of a definition. A field of a later version is left out while it is zero, so that what two
// versions of a program declare is the same.
type record struct {
	Spec    string        `json:"spec"`
	Zone    string        `json:"zone,omitempty"`
	Missed  Missed        `json:"missed,omitempty"`
	Until   int64         `json:"until,omitempty"` // milliseconds since 1970, like all times here
	Jitter  time.Duration `json:"jitter,omitempty"`
	Paused  bool          `json:"paused,omitempty"`
	First   int64         `json:"first,omitempty"`
	Message messageRecord `json:"message"`
}

type messageRecord struct {
	Topic       string              `json:"topic"`
	Key         string              `json:"key,omitempty"`
	Body        []byte              `json:"body,omitempty"`
	ContentType string              `json:"content_type,omitempty"`
	Headers     map[string]string   `json:"headers,omitempty"`
	Priority    driver.Priority     `json:"priority,omitempty"`
	Delay       time.Duration       `json:"delay,omitempty"`
	TTL         time.Duration       `json:"ttl,omitempty"`
	DedupID     string              `json:"dedup_id,omitempty"`
	DedupWindow time.Duration       `json:"dedup_window,omitempty"`
	MaxAttempts int                 `json:"max_attempts,omitempty"`
	Retry       *driver.RetryPolicy `json:"retry,omitempty"`
	Unique      *uniqueRecord       `json:"unique,omitempty"`
}

// uniqueRecord is the stored form of what ferry.Unique asks. A message does not carry it: it is asked at each publish.
type uniqueRecord struct {
	ID  string        `json:"id"`
	TTL time.Duration `json:"ttl"`
}

// encode returns the stored form of a schedule.
func encode(s *Schedule, first time.Time) ([]byte, error) {
	m := s.Message
	r := record{Spec: s.Spec, Zone: s.Zone, Missed: s.Missed, Until: millis(s.Until), Jitter: s.Jitter, Paused: s.Paused,
		First: millis(first),
		Message: messageRecord{Topic: m.Topic, Key: m.Key, Body: m.Body, ContentType: m.ContentType, Headers: m.Headers,
			Priority: m.Priority, Delay: m.Delay,
			TTL: m.TTL, DedupID: m.DedupID, DedupWindow: m.DedupWindow, MaxAttempts: m.MaxAttempts, Retry: m.Retry,
			Unique: (*uniqueRecord)(m.Unique)}}
	if r.Missed == Once {
		r.Missed = ""
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, s.invalid(fmt.Sprintf("cannot be stored: %v", err), "report this")
	}
	if len(data) > driver.MaxValue {
		return nil, driver.NewError(ferry.ErrTooLarge,
			fmt.Sprintf("schedule %s takes %d bytes as it is stored, more than %d", s.Name, len(data), driver.MaxValue),
			"its body may have 48 KB, less what headers and names take; keep large data elsewhere, and its address in the "+
				"message", nil)
	}
	return data, nil
}

// decode reads a definition.
func decode(v driver.Value) (*definition, error) {
	var r record
	if err := json.Unmarshal(v.Data, &r); err != nil {
		return nil, unreadable(v, err)
	}
	next, err := parse(r.Spec, r.Zone)
	if err != nil {
		return nil, unreadable(v, err)
	}
	if r.Missed == "" {
		r.Missed = Once
	}
	m := r.Message
	return &definition{
		Schedule: Schedule{Name: v.Name, Spec: r.Spec, Zone: r.Zone, Missed: r.Missed, Until: instant(r.Until),
			Jitter: r.Jitter, Paused: r.Paused,
			Message: &ferry.Message{Topic: m.Topic, Key: m.Key, Body: m.Body, ContentType: m.ContentType, Headers: m.Headers,
				Priority: m.Priority, Delay: m.Delay,
				TTL: m.TTL, DedupID: m.DedupID, DedupWindow: m.DedupWindow, MaxAttempts: m.MaxAttempts, Retry: m.Retry,
				Unique: (*driver.Unique)(m.Unique)}},
		first: instant(r.First), revision: v.Revision, epoch: v.Epoch, written: v.Written, timing: next,
	}, nil
}

func unreadable(v driver.Value, cause error) error {
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("schedule %s cannot be read", v.Name),
		"put it again, or delete it; was it written by a newer version?", cause)
}

// same reports whether two schedules are the same, wherever they begin.
func same(a, b *Schedule) bool {
	x, err := encode(a, time.Time{})
	if err != nil {
		return false
	}
	y, err := encode(b, time.Time{})
	return err == nil && bytes.Equal(x, y)
}

// millis and instant are how times are stored: no time is zero.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// after returns the first tick after a time; zero when there is none.
func (d *definition) after(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	next := d.timing(t)
	if !d.Until.IsZero() && next.After(d.Until) {
		return time.Time{}
	}
	return next
}

// start returns the first tick of this revision; zero when there is none.
func (d *definition) start() time.Time {
	switch {
	case d.Paused:
		return time.Time{}
	case d.first.IsZero():
		return d.after(d.written)
	}
	return d.first
}

// due returns when a tick fires: with its jitter, which does not change however often it is asked.
func (d *definition) due(tick time.Time) time.Time {
	if d.Jitter <= 0 {
		return tick
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.Name + "/" + strconv.FormatInt(tick.UnixMilli(), 10)))
	part := float64(mixed(h.Sum64())>>11) / (1 << 53) // [0, 1)
	return tick.Add(time.Duration(part * float64(d.Jitter)).Truncate(time.Millisecond))
}

// mixed spreads a hash over all its bits: names and times that are alike have sums that are.
func mixed(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// upcoming returns the first tick that is due after now.
func (d *definition) upcoming(now time.Time) time.Time {
	tick := d.after(now.Add(-d.Jitter))
	for !tick.IsZero() && !d.due(tick).After(now) {
		tick = d.after(tick)
	}
	return tick
}

// decide says of a tick that was taken at now whether it fires, and which tick is the next; zero: none.
func (d *definition) decide(tick, now time.Time) (fires bool, next time.Time) {
	if now.Sub(d.due(tick)) <= Late {
		return true, d.after(tick)
	}
	switch d.Missed {
	case Skip:
		return false, d.upcoming(now)
	case All:
		if oldest := d.newest(tick, now); tick.Before(oldest) {
			return false, oldest
		}
		return true, d.after(tick)
	}
	return true, d.upcoming(now)
}

// newest returns the first of the newest MaxMissed ticks up to now, of those from tick on. It looks back from now, ever
// farther.
func (d *definition) newest(tick, now time.Time) time.Time {
	for back := time.Minute; now.Add(-back).After(tick); back *= 2 {
		var ticks []time.Time
		for t := d.after(now.Add(-back)); !t.IsZero() && !t.After(now); t = d.after(t) {
			ticks = append(ticks, t)
		}
		if len(ticks) >= MaxMissed {
			return ticks[len(ticks)-MaxMissed]
		}
	}
	missed := []time.Time{tick}
	for t := d.after(tick); !t.IsZero() && !t.After(now); t = d.after(t) {
		missed = append(missed, t)
	}
	return missed[max(0, len(missed)-MaxMissed)]
}
