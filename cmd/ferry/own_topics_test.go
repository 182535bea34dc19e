package main

import (
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// Ferry's own topics are listed when asked for, can be paused, and take neither messages nor consumers from outside.
func TestOwnTopics(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "orders", "one", "--id", "m1")
	d.ok("schedule", "put", "nightly", "@daily", "orders", "x") // makes ferry.schedules
	d.hasNot(d.ok("topic", "ls"), "ferry.")
	d.has(d.ok("topic", "ls", "--all"), "ferry.schedules", "orders")
	d.ok("topic", "pause", "ferry.schedules")
	d.fails(exitUsage, "one of Ferry's own", "pub", "ferry.schedules", "x")
	d.fails(exitUsage, "one of Ferry's own", "sub", "ferry.schedules")
	d.fails(exitUsage, "one of Ferry's own", "topic", "create", "ferry.mine")
	d.fails(exitUsage, "one of Ferry's own", "dlq", "retry", "orders", "m1", "--to", "ferry.schedules")
}

// Jobs of an earlier version, which lie in a topic that nobody reads any more, are told.
func TestLeftoverJobs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if _, err := d.driver.Publish(t.Context(), []*driver.Message{
		{ID: "job", OwnID: true, Topic: oldJobs, Body: []byte("{}")}}, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	d.has(d.run("operation", "ls").err, "1 jobs of an earlier version", "ferry topic rm ferry.letterjobs")
	d.ok("topic", "rm", "ferry.letterjobs", "--yes")
	if told := d.run("operation", "ls").err; told != "" {
		t.Error(told)
	}
}
