package remote

import (
	"context"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/frame"
)

// logDriver is a Driver whose broker keeps messages in partitions.
type logDriver struct{ *Driver }

var _ driver.Log = (*logDriver)(nil)

// Partitions tells of each partition of a topic.
func (d *logDriver) Partitions(ctx context.Context, topic string) ([]driver.Partition, error) {
	var ps frame.Partitions
	err := d.look(ctx, frame.CallPartitions, &frame.Place{Topic: topic}, &ps)
	return ps, err
}

// Pending returns a page of what a group has read and not settled.
func (d *logDriver) Pending(ctx context.Context, q driver.PendingQuery) (driver.PendingPage, error) {
	var p frame.PendingPage
	err := d.look(ctx, frame.CallPending, (*frame.PendingQuery)(&q), &p)
	return driver.PendingPage(p), err
}

// Replay makes what is kept ready again.
func (d *logDriver) Replay(ctx context.Context, topic, group string, o driver.ReplayOptions) (driver.ResetReport,
	error) {
	var r frame.ResetReport
	err := d.change(ctx, frame.CallReplay, &frame.Replay{Topic: topic, Group: group, Options: o}, &r)
	return driver.ResetReport(r), err
}

// Range returns a page of what is in one partition.
func (d *logDriver) Range(ctx context.Context, q driver.RangeQuery) (driver.RangePage, error) {
	var p frame.RangePage
	err := d.look(ctx, frame.CallRange, (*frame.RangeQuery)(&q), &p)
	return driver.RangePage(p), err
}

// Retain sets the retention of a topic.
func (d *logDriver) Retain(ctx context.Context, topic string, r driver.Retention) error {
	return d.change(ctx, frame.CallRetain, &frame.Retain{Topic: topic, Retention: r}, &frame.Nothing{})
}

// Retention returns what Retain has set.
func (d *logDriver) Retention(ctx context.Context, topic string) (driver.Retention, error) {
	var r frame.Retention
	err := d.look(ctx, frame.CallRetention, &frame.Place{Topic: topic}, &r)
	return driver.Retention(r), err
}

// Trim removes what is beyond the retention.
func (d *logDriver) Trim(ctx context.Context, topic string) (driver.TrimReport, error) {
	var r frame.TrimReport
	err := d.change(ctx, frame.CallTrim, &frame.Place{Topic: topic}, &r)
	return driver.TrimReport(r), err
}
