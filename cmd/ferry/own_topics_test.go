package main

import "testing"

// Ferry's own topics are listed when asked for, can be paused, and take neither messages nor consumers from outside.
func TestOwnTopics(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.ok("pub", "orders", "one", "--id", "m1")
	d.ok("dlq", "retry", "orders", "--all", "--background", "--yes") // makes ferry.letterjobs
	d.hasNot(d.ok("topic", "ls"), "ferry.")
	d.has(d.ok("topic", "ls", "--all"), "ferry.letterjobs", "orders")
	d.ok("topic", "pause", "ferry.letterjobs")
	d.fails(exitUsage, "one of Ferry's own", "pub", "ferry.letterjobs", "x")
	d.fails(exitUsage, "one of Ferry's own", "sub", "ferry.letterjobs")
	d.fails(exitUsage, "one of Ferry's own", "topic", "create", "ferry.mine")
	d.fails(exitUsage, "one of Ferry's own", "dlq", "retry", "orders", "m1", "--to", "ferry.letterjobs")
}
