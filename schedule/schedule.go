package schedule

import (
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// Schedule says what is published, and when.
type Schedule struct {
	// Name is what it is called, 1 to 256 bytes of printable text.
	Name string
	// Spec is when it ticks: five cron fields (minute, hour, day of month, month, day of week) or six with seconds before
	// them, @hourly, @daily, @weekly, @monthly, @yearly, "@every 90s", or "@at 2026-01-31T08:00:00Z" for once.
	Spec string
	// Zone is the time zone of the cron fields, Europe/Berlin for example. Defaults to UTC.
	Zone string
	// Message is published at every tick, with an id of its own each time. ferry.NewMessage makes one of any value. Its At
	// and ID are empty; a Delay counts from the tick. While a message that is ferry.Unique is not settled, ticks pass
	// without another: Status.Problem tells.
	Message *ferry.Message
	// Missed says what becomes of ticks at which nobody ran schedules. Defaults to Once.
	Missed Missed
	// Until is the last time at which it may tick. Zero: for ever.
	Until time.Time
	// Jitter spreads ticks: each fires up to so much later, by a wait that its time and the schedule's name decide. It is
	// shorter than the time between two ticks.
	Jitter time.Duration
	// Paused schedules do not tick. Ticks of that time are not missed ones.
	Paused bool
}

// Missed says what becomes of ticks that are taken more than Late after they were due, because nobody ran schedules.
type Missed string

// What becomes of missed ticks.
const (
	Once Missed = "once" // one fire for all of them, the first; the default
	Skip Missed = "skip" // none fires
	All  Missed = "all"  // each fires, of the newest MaxMissed
)

// Late is after what time a tick was missed. A tick whose taker was killed is taken by another before that.
const Late = 10 * time.Second

// MaxMissed is the most missed ticks that All makes up for.
const MaxMissed = 100

// Headers that tell a handler which schedule a message is of, and which tick: that in RFC 3339. A triggered one has no
// tick.
const (
	HeaderName = "ferry-schedule"
	HeaderTick = "ferry-tick"
)

// State of a schedule.
type State string

// States of a schedule.
const (
	Active State = "active"
	Paused State = "paused"
	Ended  State = "ended" // it will not tick again: it was for once, or Until is over
)

// Status is a schedule and how far it is.
type Status struct {
	Schedule
	State State
	// Revision grows with every change of the schedule, and Edited is the broker's time of the last one.
	Revision uint64
	Edited   time.Time
	// Next is the tick to come; zero unless Active.
	Next time.Time
	// Last is the tick that was taken last; zero if there was none.
	Last time.Time
	// Problem is why the message of Last could not be published; empty if it was.
	Problem string
}

// check says what is wrong with a schedule, whatever time it is, or nil.
func (s *Schedule) check(caps driver.Capabilities) error {
	if err := checkName(s.Name); err != nil {
		return err
	}
	if _, err := parse(s.Spec, s.Zone); err != nil {
		return s.about(err)
	}
	switch {
	case s.Missed != "" && s.Missed != Once && s.Missed != Skip && s.Missed != All:
		return s.invalid(fmt.Sprintf("does not know what %.20q means for missed ticks", string(s.Missed)),
			"use once, skip or all")
	case s.Jitter < 0:
		return s.invalid(fmt.Sprintf("has a negative jitter of %v", s.Jitter), "leave it out for none")
	case s.Message == nil:
		return s.invalid("has no message", "make one with ferry.NewMessage")
	case s.Message.ID != "" || s.Message.OwnID:
		return s.invalid("has a message with an id, and would publish it once only",
			"leave the id out: each tick gives its message one")
	case !s.Message.At.IsZero() || s.Message.Delay == driver.Hold:
		return s.invalid("has a message with a time of its own",
			"leave the time out: the spec says when, and a delay counts from the tick")
	}
	if err := driver.CheckTopic(s.Message.Topic); err != nil {
		return s.about(err)
	}
	return s.about(fired(s, 0, time.Time{}).Validate(caps.MaxBody))
}

func (s *Schedule) invalid(text, hint string) error {
	return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("schedule %s %s", s.Name, text), hint, nil)
}

// about says of which schedule an error is, in front of its text as all others do.
func (s *Schedule) about(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	return driver.NewError(e.Kind, fmt.Sprintf("schedule %s: %s", s.Name, e.Text), e.Hint, e.Cause)
}

// checkName says what is wrong with the name of a schedule, or nil. It is the key of ticks.
func checkName(name string) error {
	if name == "" {
		return driver.NewError(ferry.ErrInvalid, "a schedule has no name", "name it", nil)
	}
	if len(name) > driver.MaxKeyLen {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("the name of a schedule has %d bytes", len(name)),
			fmt.Sprintf("use at most %d", driver.MaxKeyLen), nil)
	}
	if driver.CheckValueNames(bucketSchedules, name) != nil {
		return driver.NewError(ferry.ErrInvalid,
			fmt.Sprintf("the name %.80q of a schedule contains control characters or is not UTF-8", name),
			"use printable UTF-8 text", nil)
	}
	return nil
}
