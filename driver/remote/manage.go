package remote

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
	"github.com/ferrymq/ferry/internal/framecall"
)

// Topics returns the topics that the token may see.
func (d *Driver) Topics(ctx context.Context, names ...string) ([]driver.TopicInfo, error) {
	var ts frame.Topics
	err := d.look(ctx, frame.CallTopics, (*frame.TopicNames)(&names), &ts)
	return ts, err
}

// Stats returns the counts of a topic.
func (d *Driver) Stats(ctx context.Context, topic string) (driver.TopicStats, error) {
	var s frame.Stats
	err := d.look(ctx, frame.CallStats, &frame.Place{Topic: topic}, &s)
	return driver.TopicStats(s), err
}

// Browse returns a page of entries.
func (d *Driver) Browse(ctx context.Context, q driver.Query) (driver.Page, error) {
	var p frame.Page
	err := d.look(ctx, frame.CallBrowse, (*frame.Query)(&q), &p)
	return driver.Page(p), err
}

// Get returns a message as every group sees it.
func (d *Driver) Get(ctx context.Context, t driver.Target) ([]driver.Entry, error) {
	var es frame.Entries
	err := d.look(ctx, frame.CallGet, (*frame.Target)(&t), &es)
	return es, err
}

// Usage tells what the broker uses.
func (d *Driver) Usage(ctx context.Context) (driver.Usage, error) {
	var u frame.Usage
	err := d.look(ctx, frame.CallUsage, &frame.Nothing{}, &u)
	return driver.Usage(u), err
}

// Audit looks at every message of a topic.
func (d *Driver) Audit(ctx context.Context, topic string, fix bool) (driver.AuditReport, error) {
	var r frame.AuditReport
	q := &frame.Place{Topic: topic, Flag: fix}
	if fix {
		err := d.change(ctx, frame.CallAudit, q, &r)
		return driver.AuditReport(r), err
	}
	err := d.look(ctx, frame.CallAudit, q, &r)
	return driver.AuditReport(r), err
}

// EnsureTopic creates a topic.
func (d *Driver) EnsureTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	return d.change(ctx, frame.CallEnsureTopic, &frame.Config{Topic: topic, Config: c}, &frame.Nothing{})
}

// AlterTopic changes the configuration of a topic.
func (d *Driver) AlterTopic(ctx context.Context, topic string, c driver.TopicConfig) error {
	return d.change(ctx, frame.CallAlterTopic, &frame.Config{Topic: topic, Config: c}, &frame.Nothing{})
}

// DeleteTopic removes a topic with all its messages.
func (d *Driver) DeleteTopic(ctx context.Context, topic string) error {
	return d.change(ctx, frame.CallDeleteTopic, &frame.Place{Topic: topic}, &frame.Nothing{})
}

// EnsureGroup creates a group.
func (d *Driver) EnsureGroup(ctx context.Context, topic, group string, o driver.GroupOptions) error {
	return d.change(ctx, frame.CallEnsureGroup, &frame.Group{Topic: topic, Group: group, Options: o}, &frame.Nothing{})
}

// DeleteGroup removes a group.
func (d *Driver) DeleteGroup(ctx context.Context, topic, group string) error {
	return d.change(ctx, frame.CallDeleteGroup, &frame.Place{Topic: topic, Group: group}, &frame.Nothing{})
}

// Pause stops deliveries, or lets them go on.
func (d *Driver) Pause(ctx context.Context, topic, group string, paused bool) error {
	return d.change(ctx, frame.CallPause, &frame.Place{Topic: topic, Group: group, Flag: paused}, &frame.Nothing{})
}

// Purge removes what is ready, waiting or delayed.
func (d *Driver) Purge(ctx context.Context, topic, group string) (int, error) {
	var n frame.Number
	err := d.change(ctx, frame.CallPurge, &frame.Place{Topic: topic, Group: group}, &n)
	return int(n), err
}

// Delete removes single messages.
func (d *Driver) Delete(ctx context.Context, ts []driver.Target) []error {
	errs := make([]error, len(ts))
	if len(ts) > 0 {
		q := frame.Targets(ts)
		d.ask(ctx, frame.CallDelete, &q, indexes(len(ts)), errs)
	}
	return errs
}

// Move makes messages due.
func (d *Driver) Move(ctx context.Context, ms []driver.Move) []error {
	errs := make([]error, len(ms))
	var q frame.Moves
	var at []int
	for i := range ms {
		if errs[i] = ms[i].Check(d.caps.MaxBody); errs[i] == nil { // an edit that is invalid cannot be sent
			q, at = append(q, ms[i]), append(at, i)
		}
	}
	if len(at) > 0 {
		d.ask(ctx, frame.CallMove, &q, at, errs)
	}
	return errs
}

// ask makes a call with one error for each of some indexes.
func (d *Driver) ask(ctx context.Context, call string, q frame.Value, at []int, errs []error) {
	var answer frame.Errors
	err := d.change(ctx, call, q, &answer)
	if err == nil && len(answer) != len(at) {
		err = driver.NewError(driver.ErrUnknown, "the server did not answer for each message", "look at them, and try again",
			nil)
	}
	for i, n := range at {
		if errs[n] = err; err == nil {
			errs[n] = framecall.Away(answer[i], driver.ErrUnknown)
		}
	}
}

func indexes(n int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = i
	}
	return at
}

// Reset makes a group start again from a position.
func (d *Driver) Reset(ctx context.Context, topic, group string, o driver.ResetOptions) (driver.ResetReport, error) {
	var r frame.ResetReport
	err := d.change(ctx, frame.CallReset, &frame.Reset{Topic: topic, Group: group, Options: o}, &r)
	return driver.ResetReport(r), err
}
