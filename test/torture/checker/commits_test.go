package checker

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// committing begins a tape of a broker whose leases are of partitions, and whose clients commit now and then.
func committing() *tape {
	t := newTape()
	t.run().CommitIn, t.run().Heartbeat, t.run().Exact = 500*time.Millisecond, time.Second, false
	return t
}

// acked is a message that a consumer handles; then it is well for a time, and then it is killed.
func acked(t *tape, well time.Duration) {
	t.publish(ev{ID: "a", Key: "k", Seq: 1})
	t.handle("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
	t.wait(well)
	t.mark(history.KindCrash, "consumer-1.1")
	t.wait(leaseTime)
}

// delayed is one that was stored twice after somebody died, or nobody.
func delayed(t *tape, dies string, delay time.Duration) {
	t.publish(ev{ID: "a", Delay: int64(delay)})
	t.wait(delay)
	if dies != "" {
		t.mark(history.KindCrash, dies)
	}
	twice(t)
}

// twice is a message that was stored twice, and handled twice.
func twice(t *tape) {
	t.handle("consumer-2.1", ev{ID: "a", Ref: "0-1"})
	t.handle("consumer-2.1", ev{ID: "a", Ref: "0-2"})
}

// releasedAndClaimed is a message that its consumer gives back, and gets again; then it is well for a time, and then it
// is killed.
func releasedAndClaimed(t *tape, well time.Duration) {
	t.publish(ev{ID: "a"})
	t.settle(t.claim("consumer-1.1", ev{ID: "a"}), "release", 0)
	t.wait(time.Second)
	t.claim("consumer-1.1", ev{ID: "a", Cause: causeReleased})
	t.wait(well)
	t.mark(history.KindCrash, "consumer-1.1")
	t.wait(leaseTime)
}

func TestCommits(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		kind  Kind // empty: nothing is wrong
		write func(*tape)
	}{
		"killed before the commit: it comes again as if for the first time": {"", func(t *tape) {
			acked(t, 100*time.Millisecond)
			t.handle("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1})
		}},
		"killed long after the commit, and it comes again": {Unexplained, func(t *tape) {
			acked(t, time.Second)
			t.handle("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1, Deliveries: 2, Cause: causeLease})
		}},
		"somebody else was killed": {Unexplained, func(t *tape) {
			t.publish(ev{ID: "a"})
			t.handle("consumer-1.1", ev{ID: "a"})
			t.mark(history.KindCrash, "consumer-2.1")
			t.wait(leaseTime)
			t.handle("consumer-3.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		}},
		"killed before its claim was committed: the loss is not counted": {"", func(t *tape) {
			t.publish(ev{ID: "a"})
			t.mark(history.KindCrash, "consumer-0.1")
			t.start(t.claim("consumer-1.1", ev{ID: "a", Deliveries: 2, Cause: causeLease}))
			t.mark(history.KindCrash, "consumer-1.1")
			t.wait(leaseTime)
			t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		}},
		"killed before a second claim was committed: it comes as the first one had returned it": {"", func(t *tape) {
			releasedAndClaimed(t, 100*time.Millisecond)
			t.handle("consumer-2.1", ev{ID: "a", Cause: causeReleased})
		}},
		"killed long after the second claim was committed: that was lost, not returned": {Unexplained, func(t *tape) {
			releasedAndClaimed(t, time.Second)
			t.handle("consumer-2.1", ev{ID: "a", Cause: causeReleased})
		}},
		"given back by who had it last, whose claim was perhaps not committed": {"", func(t *tape) {
			t.publish(ev{ID: "a"})
			t.start(t.claim("consumer-1.1", ev{ID: "a"}))
			t.wait(time.Second)
			t.mark(history.KindCrash, "consumer-1.1")
			t.wait(leaseTime)
			c := t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
			t.mark(history.KindFault, "consumer-2.1")
			t.mark(history.KindHeal, "consumer-2.1")
			t.settle(c, "release", 0)
			t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeReleased})
		}},
		"done, but not committed: its attempts begin anew": {"", func(t *tape) {
			t.publish(ev{ID: "a"})
			c := t.claim("consumer-1.1", ev{ID: "a"})
			t.start(c)
			t.settle(c, "retry", 0)
			t.handle("consumer-1.1", ev{ID: "a", Attempt: 2, Cause: causeRetry})
			t.mark(history.KindCrash, "consumer-1.1")
			t.wait(leaseTime)
			t.handle("consumer-2.1", ev{ID: "a"})
		}},
		"not done: its attempts do not begin anew": {Attempts, func(t *tape) {
			t.publish(ev{ID: "a"})
			c := t.claim("consumer-1.1", ev{ID: "a"})
			t.start(c)
			t.settle(c, "retry", 0)
			t.mark(history.KindCrash, "consumer-1.1")
			t.wait(leaseTime)
			t.handle("consumer-2.1", ev{ID: "a"})
		}},
		"expired, by more than the clock of the broker is known": {Expired, func(t *tape) {
			t.run().ClockError = 100 * time.Millisecond
			t.publish(ev{ID: "a", TTL: int64(time.Second)})
			t.handle("consumer-1.1", ev{ID: "a", PublishedAt: t.now + brokerAhead - int64(1200*time.Millisecond)})
		}},
		"expired by less": {"", func(t *tape) {
			t.run().ClockError = 100 * time.Millisecond
			t.publish(ev{ID: "a", TTL: int64(time.Second)})
			t.handle("consumer-1.1", ev{ID: "a", PublishedAt: t.now + brokerAhead - int64(1050*time.Millisecond)})
		}},
		"a claim that was committed long ago is counted when its holder dies": {Deliveries, func(t *tape) {
			t.publish(ev{ID: "a"})
			t.start(t.claim("consumer-1.1", ev{ID: "a"}))
			t.wait(time.Second)
			t.mark(history.KindCrash, "consumer-1.1")
			t.wait(leaseTime)
			t.handle("consumer-2.1", ev{ID: "a", Deliveries: 1, Cause: causeLease})
		}},
		"a partition goes a heartbeat early": {"", func(t *tape) {
			t.publish(ev{ID: "a"})
			t.start(t.claim("consumer-1.1", ev{ID: "a"}))
			t.mark(history.KindFault, "consumer-1.1")
			t.wait(leaseTime - 900*time.Millisecond)
			t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		}},
		"a partition goes while its owner is only slow": {TwoLeases, func(t *tape) {
			t.publish(ev{ID: "a"})
			t.start(t.claim("consumer-1.1", ev{ID: "a"}))
			t.mark(history.KindFault, "consumer-1.1")
			t.wait(leaseTime / 2)
			t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		}},
		"a partition goes from one that does not know of a reset yet": {"", func(t *tape) {
			afterReset(t, 1900*time.Millisecond)
		}},
		"a partition goes from one that should know of a reset": {TwoLeases, func(t *tape) {
			t.mark(history.KindFault, "consumer-1.1") // which explains that it comes again, and not so early
			afterReset(t, 2100*time.Millisecond)
		}},
		"a group waits for the member that died last": {"", func(t *tape) {
			t.publish(ev{ID: "a"})
			t.start(t.claim("consumer-1.1", ev{ID: "a"}))
			t.wait(time.Second)
			t.mark(history.KindCrash, "consumer-1.1")
			t.wait(leaseTime / 2)
			t.mark(history.KindCrash, "consumer-2.1")
			t.wait(leaseTime)
			t.handle("consumer-3.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		}},
		"and for nobody else": {LateRedelivery, func(t *tape) {
			t.publish(ev{ID: "a"})
			t.start(t.claim("consumer-1.1", ev{ID: "a"}))
			t.wait(time.Second)
			t.mark(history.KindCrash, "consumer-1.1")
			t.wait(leaseTime / 2)
			t.mark(history.KindCrash, "producer-1.1")
			t.wait(leaseTime)
			t.handle("consumer-3.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		}},
		"stored twice because its mover died":   {"", func(t *tape) { delayed(t, "consumer-1.1", time.Second) }},
		"stored twice, and nobody died":         {Unexplained, func(t *tape) { delayed(t, "", time.Second) }},
		"stored twice although it had no delay": {Unexplained, func(t *tape) { delayed(t, "consumer-1.1", 0) }},
		"stored twice because a producer died": {"",
			func(t *tape) { t.run().NoDuplicates = true; delayed(t, "producer-1.1", time.Second) }},
		"stored twice where nothing comes twice": {Duplicate, func(t *tape) {
			t.run().NoDuplicates = true
			t.publish(ev{ID: "a", Delay: int64(time.Second)})
			t.wait(time.Second)
			t.mark(history.KindFault, "consumer-1.1")
			t.mark(history.KindHeal, "consumer-1.1")
			twice(t)
		}},
		"settled by one who had lost the message": {StaleSettle, func(t *tape) {
			t.publish(ev{ID: "a"})
			old := t.claim("consumer-1.1", ev{ID: "a"})
			t.start(old)
			t.mark(history.KindFault, "consumer-1.1")
			t.wait(leaseTime)
			t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
			t.settle(old, "ack", 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tape := committing()
			x.write(tape)
			r := tape.check(t)
			if x.kind == "" && !r.OK || x.kind != "" && (r.Violations[x.kind] == 0 || len(r.Violations) != 1) {
				t.Errorf("want only %q:\n%s", x.kind, r.Verdict())
			}
		})
	}
}

// afterReset has a message go to another while a member has it that was made to leave by a reset so long before.
func afterReset(t *tape, before time.Duration) {
	t.serverFault(history.Reset, 0)
	t.wait(before)
	t.publish(ev{ID: "a"})
	t.start(t.claim("consumer-1.1", ev{ID: "a"}))
	t.wait(300 * time.Millisecond)
	t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
}
