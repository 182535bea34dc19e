package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/operation"
)

func invalid(text, hint string) error { return driver.NewError(ferry.ErrInvalid, text, hint, nil) }

// Messages selects messages of a topic that wait for something.
type Messages struct {
	Topic string `json:"topic"`
	// Group keeps those of one group. Empty: every group.
	Group string `json:"group,omitempty"`
	// States are some of ready, waiting, delayed and held; the last two belong to the topic, not to a group.
	States []ferry.State `json:"states,omitempty"`
	// Where is the text of a filter (deadletter.ParseFilter). Empty: all.
	Where string `json:"where,omitempty"`
}

// check says what is wrong with a selection of these states.
func (m Messages) check(may ...ferry.State) error {
	if err := driver.CheckName("topic", m.Topic); err != nil {
		return err
	}
	for _, s := range m.States {
		switch {
		case !slices.Contains(may, s):
			return invalid(fmt.Sprintf("messages that are %.40q cannot be chosen", s), fmt.Sprintf("use some of %v", may))
		case m.Group != "" && ofTopic(s):
			return invalid(fmt.Sprintf("messages that are %s belong to no group", s), "leave the group out, or the state")
		}
	}
	if m.Group != "" {
		if err := driver.CheckName("group", m.Group); err != nil {
			return err
		}
	}
	_, err := filter(m.Where)
	return err
}

// ofTopic reports whether messages of this state belong to the topic alone.
func ofTopic(s ferry.State) bool { return s == driver.StateDelayed || s == driver.StateHeld }

// place is one list of messages, and where in it a scan goes on.
type place struct {
	State  ferry.State `json:"state"`
	Group  string      `json:"group,omitempty"`
	Cursor string      `json:"cursor,omitempty"`
}

// scan goes through the messages of a selection, a page at a time.
type scan struct {
	broker *ferry.Broker
	driver driver.Driver
	task   *operation.Task
	topic  string
	where  *deadletter.Filter
	// apply does it to some, and returns one error each.
	apply func(ctx context.Context, part []driver.Entry) []error
	// needs leaves out what it was done to already; nil: nothing was.
	needs func(e driver.Entry) bool
}

const (
	page = 200 // messages that are looked at in one step
	part = 20  // messages that it is done to in one step: on Kafka each may take a tenth of a second
)

// run goes through all places, from the checkpoint on.
func (s *scan) run(ctx context.Context, m Messages, states ...ferry.State) (err error) {
	if len(m.States) > 0 {
		states = m.States
	}
	if s.where, err = filter(m.Where); err != nil {
		return err
	}
	places, total, err := s.places(ctx, m, states)
	if err != nil {
		return err
	}
	var at place
	resumed, err := s.task.Checkpoint(&at)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(places, func(p place) bool {
		return p.State == at.State && p.Group == at.Group
	}); resumed && i >= 0 {
		places = places[i:]
		places[0] = at
	}
	seen := int64(0)
	for _, p := range places {
		if err := s.through(ctx, p, &seen, total); err != nil {
			return err
		}
	}
	return nil
}

// places returns the lists of a selection, and about how many messages they have.
func (s *scan) places(ctx context.Context, m Messages, states []ferry.State) (list []place, total int64, err error) {
	st, err := s.driver.Stats(ctx, m.Topic)
	if err != nil {
		return nil, 0, err
	}
	found := m.Group == ""
	for _, state := range states {
		switch state {
		case driver.StateDelayed, driver.StateHeld:
			if m.Group != "" {
				continue
			}
			list = append(list, place{State: state})
			total += map[ferry.State]int64{driver.StateDelayed: st.Delayed, driver.StateHeld: st.Held}[state]
			continue
		}
		for _, g := range st.Groups {
			if m.Group != "" && m.Group != g.Group {
				continue
			}
			found = true
			list = append(list, place{State: state, Group: g.Group})
			total += map[ferry.State]int64{driver.StateReady: g.Ready, driver.StateWaiting: g.Waiting}[state]
		}
	}
	if !found {
		return nil, 0, driver.NewError(ferry.ErrNotFound, fmt.Sprintf("topic %s has no group %s", m.Topic, m.Group),
			"see its groups with 'ferry group ls'", nil)
	}
	return list, total, nil
}

// through goes through one place.
func (s *scan) through(ctx context.Context, p place, seen *int64, total int64) error {
	s.task.Phase(string(p.State))
	for {
		got, err := s.driver.Browse(ctx,
			driver.Query{Topic: s.topic, Group: p.Group, State: p.State, Cursor: p.Cursor, Limit: page, MaxScan: page})
		if err != nil {
			return err
		}
		chosen, err := s.choose(ctx, got.Entries)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(chosen, part) {
			if err := s.step(ctx, part); err != nil {
				return err
			}
		}
		*seen += int64(got.Scanned)
		s.task.Scanned(*seen, total)
		if p.Cursor = got.Next; got.Next == "" {
			return nil
		}
		if err := s.task.Save(p); err != nil {
			return err
		}
	}
}

// choose returns the entries that are meant.
func (s *scan) choose(ctx context.Context, entries []driver.Entry) ([]driver.Entry, error) {
	var chosen []driver.Entry
	for _, e := range entries {
		if e.Message == nil || e.PublishedAt.After(s.task.Submitted().Add(grain)) || s.needs != nil && !s.needs(e) {
			continue
		}
		shown, _ := s.broker.UndoEntry(ctx, e) // what cannot be undone here is asked as it is stored
		yes, err := s.where.Match(ctx, deadletter.Letter{Entry: shown, From: s.topic})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			s.task.Skip(1, err)
		case yes:
			chosen = append(chosen, e)
		}
	}
	return chosen, nil
}

// stepTimeout bounds one step, which the end of the operation does not interrupt: its outcome would be unknown.
const stepTimeout = time.Minute

// step does it to some messages. An error of the broker ends the scan; one about a message skips it.
func (s *scan) step(ctx context.Context, chosen []driver.Entry) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.task.DryRun() {
		s.task.Did(len(chosen))
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
	defer cancel()
	var failed error
	for i, err := range s.apply(ctx, chosen) {
		switch {
		case err == nil:
			s.task.Did(1)
		case errors.Is(err, ferry.ErrNotFound), errors.Is(err, ferry.ErrConflict), errors.Is(err, ferry.ErrInvalid),
			errors.Is(err, ferry.ErrTooLarge):
			s.task.Skip(1, err)
		case failed == nil:
			failed = fmt.Errorf("message %s: %w", chosen[i].ID, err)
		}
	}
	return failed
}

// target names a message as it was found.
func (s *scan) target(e driver.Entry) driver.Target {
	return driver.Target{Topic: s.topic, Group: e.Group, Ref: e.Ref, ID: e.ID}
}

// Purge deletes messages that were published before it was submitted and wait: those that are ready, wait for a retry
// or are delayed, unless States says otherwise. With States delayed and waiting, it cancels what has not begun. What is
// in flight stays, and so do dead letters.
type Purge struct{ Messages }

// Request returns what Queue.Submit takes.
func (a Purge) Request() operation.Request {
	return operation.Request{Kind: MessagesPurge, Args: a}
}

func (a Purge) check() error {
	return a.Messages.check(driver.StateReady, driver.StateWaiting, driver.StateDelayed, driver.StateHeld)
}

func (a Purge) run(ctx context.Context, b *ferry.Broker, t *operation.Task) error {
	s := &scan{broker: b, driver: b.Driver(), task: t, topic: a.Topic}
	s.apply = func(ctx context.Context, part []driver.Entry) []error {
		targets := make([]driver.Target, len(part))
		for i, e := range part {
			targets[i] = s.target(e)
		}
		return twice(func() []error { return s.driver.Delete(ctx, targets) })
	}
	return s.run(ctx, a.Messages, driver.StateDelayed, driver.StateWaiting, driver.StateReady)
}

// Reschedule makes messages due at another time that were published before it was submitted: those that are delayed or
// wait for a retry, unless States says otherwise.
type Reschedule struct {
	Messages
	// At is when they are due. The zero time, or one that is past: at once. What is due within five seconds of it already
	// is left.
	At time.Time `json:"at,omitzero"`
}

// Request returns what Queue.Submit takes.
func (a Reschedule) Request() operation.Request {
	return operation.Request{Kind: MessagesReschedule, Args: a}
}

func (a Reschedule) check() error {
	return a.Messages.check(driver.StateWaiting, driver.StateDelayed, driver.StateHeld)
}

// near is how exactly a message was moved: Move takes a duration, and the call a moment.
const near = 5 * time.Second

func (a Reschedule) run(ctx context.Context, b *ferry.Broker, t *operation.Task) error {
	s := &scan{broker: b, driver: b.Driver(), task: t, topic: a.Topic}
	s.needs = func(e driver.Entry) bool { return a.At.IsZero() || e.DueAt.Sub(a.At).Abs() > near }
	s.apply = func(ctx context.Context, part []driver.Entry) []error {
		moves := make([]driver.Move, len(part))
		for i, e := range part {
			moves[i] = driver.Move{Target: s.target(e), After: max(0, time.Until(a.At))}
		}
		return twice(func() []error { return s.driver.Move(ctx, moves) })
	}
	return s.run(ctx, a.Messages, driver.StateDelayed, driver.StateWaiting)
}

// twice repeats a step of which some outcomes are not known. What it then does not find, or finds as it should be, was
// done the first time.
func twice(step func() []error) []error {
	first := step()
	if !slices.ContainsFunc(first, func(err error) bool { return errors.Is(err, ferry.ErrUnknown) }) {
		return first
	}
	second := step()
	for i, err := range first {
		if !errors.Is(err, ferry.ErrUnknown) {
			continue
		}
		if first[i] = second[i]; errors.Is(second[i], ferry.ErrNotFound) || errors.Is(second[i], ferry.ErrConflict) {
			first[i] = nil
		}
	}
	return first
}
