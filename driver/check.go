package driver

import (
	"fmt"
	"time"
)

// What a caller can get wrong is checked here, once for all drivers: each method of a driver begins with its check.
// Errors show names cut short, so that what a caller passed cannot fill a log.

// MaxPartitions is the most that TopicConfig.Partitions may ask for; a backend may allow less.
const MaxPartitions = 10_000

// CheckGroup says what is wrong with the names of a topic and of one of its groups, or nil.
func CheckGroup(topic, group string) error {
	if err := CheckName("topic", topic); err != nil {
		return err
	}
	return CheckName("group", group)
}

// CheckScope is CheckGroup for a call that means the whole topic when it names no group.
func CheckScope(topic, group string) error {
	if group == "" {
		return CheckName("topic", topic)
	}
	return CheckGroup(topic, group)
}

// CheckMax says what is wrong with the most that a Receive asks for, or nil.
func CheckMax(most int) error {
	if most < 1 {
		return NewError(ErrInvalid, fmt.Sprintf("cannot receive %d deliveries", most), "ask for at least one", nil)
	}
	return nil
}

// Check says what is wrong with a delivery that is to be begun, extended or settled, or nil. Whether it is held is the
// driver's to say.
func (d *Delivery) Check() error {
	if d == nil || d.Message == nil {
		return NewError(ErrInvalid, "no delivery is given", "pass what Receive returned", nil)
	}
	return nil
}

// Lost is the error for a delivery that is not held any more, or was not received by this subscription. Cause may be
// nil.
func (d *Delivery) Lost(cause error) error {
	return NewError(ErrLeaseLost, fmt.Sprintf("delivery %s is no longer held", quote(fmt.Sprint(d.Token))),
		"extend leases in time; the message is delivered again", cause)
}

// Check says what is wrong with a settlement, or nil.
func (s *Settlement) Check(maxBody int) error {
	if err := s.Delivery.Check(); err != nil {
		return err
	}
	if s.Outcome > Drop {
		return NewError(ErrInvalid, fmt.Sprintf("outcome %d does not exist", s.Outcome),
			"use Ack, Retry, Dead, Release or Drop", nil)
	}
	if s.Unseen && s.Outcome != Release {
		return NewError(ErrInvalid, fmt.Sprintf("the outcome of a delivery that no handler saw is %s", s.Outcome),
			"release it, or leave Unseen out", nil)
	}
	for _, m := range s.Emit {
		if err := m.CheckPublish(maxBody); err != nil {
			return err
		}
	}
	return nil
}

// Check says what is wrong with a target, or nil.
func (t Target) Check() error {
	if err := CheckScope(t.Topic, t.Group); err != nil {
		return err
	}
	switch {
	case t.Ref.IsZero() && t.ID == "":
		return NewError(ErrInvalid, fmt.Sprintf("no message of topic %s is named", quote(t.Topic)),
			"give its Ref or its ID", nil)
	case t.Ref.Partition < 0:
		return NewError(ErrInvalid, fmt.Sprintf("there is no partition %d", t.Ref.Partition),
			"use the Ref that a receipt, a delivery or an entry has", nil)
	case t.Death < 0 || t.Death > 0 && t.Group == "":
		return NewError(ErrInvalid, fmt.Sprintf("death %d of a message in group %s does not exist", t.Death, quote(t.Group)),
			"name the group of the dead letter; Death is 1 + its Rounds, or zero", nil)
	}
	return checkText("id", t.ID, MaxIDLen)
}

// Outlived is the error for a Target whose Death is over.
func (t Target) Outlived() error {
	return NewError(ErrConflict, fmt.Sprintf("message %s is not that dead letter of group %s any more",
		t.name(), quote(t.Group)),
		"it was replayed meanwhile; look at it again", nil)
}

// name is how an error calls the message.
func (t Target) name() string {
	if t.Ref.IsZero() {
		return quote(t.ID)
	}
	return t.Ref.String()
}

// Check says what is wrong with a move and with what it writes, or nil.
func (m *Move) Check(maxBody int) error {
	if err := m.Target.Check(); err != nil {
		return err
	}
	if m.To != "" {
		if err := CheckName("group", m.To); err != nil {
			return err
		}
		if m.Group == "" || m.Group == m.To {
			return NewError(ErrInvalid, fmt.Sprintf("a dead letter cannot go from group %s to group %s",
				quote(m.Group), quote(m.To)),
				"name the group where it died, and another one", nil)
		}
	}
	if m.Edit == nil {
		return nil
	}
	c := *m.Edit
	c.Topic, c.Delay, c.At = m.Topic, 0, time.Time{} // After says when it is due
	return c.Validate(maxBody)
}

// Check says what is wrong with a configuration, or nil. What only some backends have is for them to refuse.
func (c TopicConfig) Check() error {
	for _, s := range c.settings() {
		if s.sign < 0 {
			return NewError(ErrInvalid, s.text+" is negative", "use zero for no bound", nil)
		}
	}
	switch {
	case c.KeepMost > 0 && c.Keep == 0:
		return NewError(ErrInvalid, "keep most bounds what is kept, and nothing is", "set how long to keep it, too", nil)
	case c.Partitions > MaxPartitions:
		return NewError(ErrInvalid, fmt.Sprintf("%d partitions are too many", c.Partitions),
			fmt.Sprintf("use at most %d", MaxPartitions), nil)
	}
	return nil
}

// Check says what is wrong with the options of a group, or nil.
func (o GroupOptions) Check(c Capabilities) error {
	if err := o.Order.check(); err != nil {
		return err
	}
	return o.Start.checkStart(c)
}

func (o Order) check() error {
	if o > Relaxed {
		return NewError(ErrInvalid, fmt.Sprintf("order %d does not exist", o), "use Strict or Relaxed", nil)
	}
	return nil
}

// Check says what is wrong with a position, or nil. Whether it still exists is the driver's to say.
func (p Position) Check() error {
	switch {
	case p.From > FromRef:
		return NewError(ErrInvalid, fmt.Sprintf("position kind %d does not exist", p.From),
			"use FromEnd, FromBegin, FromTime or FromRef", nil)
	case p.From == FromTime && p.Time.IsZero():
		return NewError(ErrInvalid, "a position by time has no time", "set Position.Time, or use FromBegin", nil)
	case p.From == FromRef && (p.Ref.IsZero() || p.Ref.Partition < 0):
		return NewError(ErrInvalid, fmt.Sprintf("%v is no place of a message", p.Ref),
			"set Position.Ref to that of a message", nil)
	}
	return nil
}

// checkStart says what is wrong with the position that a new group begins at.
func (p Position) checkStart(c Capabilities) error {
	if err := p.Check(); err != nil {
		return err
	}
	if p.From != FromEnd && c.History == HistoryNone {
		return NewError(ErrUnsupported, c.Driver+" keeps no history to start from", "start at the end", nil)
	}
	return nil
}

// CheckKept says why a new group cannot begin at p in a topic that keeps settled messages for so long, or nil. What is
// not settled alone is no history: which messages that are depends on how far other groups happen to be.
func (p Position) CheckKept(topic string, keep time.Duration) error {
	if p.From == FromEnd || keep > 0 {
		return nil
	}
	return NewError(ErrUnsupported, fmt.Sprintf("topic %s keeps no history for a new group to start from", quote(topic)),
		"start at the end, or have the topic keep messages (Keep, ferry topic alter --keep) before what it shall get is "+
			"published", nil)
}

// Check says what is wrong with a reset of a group, or nil.
func (o ResetOptions) Check(topic, group string) error {
	if err := CheckGroup(topic, group); err != nil {
		return err
	}
	return o.To.Check()
}

// Check says what is wrong with a retention, or nil.
func (r Retention) Check() error {
	text := ""
	switch {
	case r.Age < 0:
		text = fmt.Sprintf("age %v", r.Age)
	case r.Entries < 0:
		text = fmt.Sprintf("entries %d", r.Entries)
	case r.Bytes < 0:
		text = fmt.Sprintf("bytes %d", r.Bytes)
	default:
		return nil
	}
	return NewError(ErrInvalid, text+" is negative", "use zero for no bound", nil)
}

// Check says what is wrong with a replay to a group, or nil.
func (o ReplayOptions) Check(topic, group string) error {
	if err := CheckGroup(topic, group); err != nil {
		return err
	}
	return checkSpan(o.From, o.To)
}

func checkSpan(from, to Position) error {
	if err := from.Check(); err != nil {
		return err
	}
	return to.Check()
}
