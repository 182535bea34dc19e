package checker

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// Histories in which one promise is broken, and the only violation each must be found guilty of.
var bad = []struct {
	name  string
	kind  Kind
	write func(*tape)
}{
	{"acknowledged, never delivered", Lost, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.stats.Groups[0].Cancelled++
	}},
	{"lost long after everything was wiped", Lost, func(t *tape) {
		t.serverFault(history.Wiped, 0)
		t.publish(ev{ID: "z"})
		t.handle("consumer-1.1", ev{ID: "z"})
		t.wait(3 * time.Second)
		t.publish(ev{ID: "a"})
		t.stats.Groups[0].Cancelled++
	}},
	{"replayed by nobody", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a", Cause: causeReplay})
	}},
	{"delivered, crashed, never again", Lost, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "consumer-1.1")
		t.stats.Groups[0].Cancelled++
	}},
	{"a dead letter that vanished", Lost, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a", Attempt: 1})
		t.run().MaxAttempts = 1
		t.settleCall(c, "dead", 0)
		t.about(c, history.KindSettled)
		t.stats.Groups[0].Cancelled++
		t.run().Exact = false
	}},
	{"never published", Phantom, func(t *tape) { t.claim("consumer-1.1", ev{ID: "a", PublishedAt: 1}) }},
	{"delivered although refused", Phantom, func(t *tape) {
		t.call(ev{ID: "a"})
		t.answer("a", history.KindRefused)
		t.handle("consumer-1.1", ev{ID: "a"})
		t.run().Exact = false
	}},
	{"another body", Corrupted, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a", Hash: "of something else"})
	}},
	{"another key", Corrupted, func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.handle("consumer-1.1", ev{ID: "a", Key: "l", Seq: 1})
	}},
	{"delivered twice as first", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.mark(history.KindClose, "consumer-1.1")
		t.start(c)
		t.handle("consumer-2.1", ev{ID: "a"})
	}},
	{"given back by a handler, as first", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.settle(c, "release", 0)
		t.handle("consumer-2.1", ev{ID: "a"})
	}},
	{"a killer that is not counted", Deliveries, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime)
		t.start(t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease}))
		t.mark(history.KindCrash, "consumer-2.1")
		t.wait(leaseTime)
		t.handle("consumer-3.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	}},
	{"delivered after it was settled", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a"})
		t.mark(history.KindFault, "consumer-1.1")
		c := t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.start(c)
		t.settleCall(c, "ack", 0)
		t.about(c, history.KindSettleRefused)
	}},
	{"a lease that ran out under a healthy holder", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	}},
	{"a retry that nobody asked for", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a", Cause: causeRetry})
	}},
	{"released by nobody", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a", Cause: causeReleased})
	}},
	{"a fail-over that was none", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a", Cause: causeFailover})
	}},
	{"one lease received twice", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.add(c)
		t.start(c)
		t.settle(c, "ack", 0)
	}},
	{"one lease handled twice", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.start(c)
		t.settle(c, "ack", 0)
	}},
	{"a stall of the machine that is long over", Unexplained, func(t *tape) {
		t.add(ev{Kind: history.KindFault, Note: history.Stall})
		t.add(ev{Kind: history.KindHeal, Note: history.Stall})
		t.publish(ev{ID: "a", Due: 1}) // not the first publish of the tape
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	}},
	{"an explained duplicate in a run that promises none", Duplicate, func(t *tape) {
		good["kill, then redelivery when the lease is over"](t)
		t.run().NoDuplicates = true
	}},
	{"a follower before its predecessor was settled", Order, func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		c := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		t.start(c)
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2})
		t.settle(c, "ack", 0)
	}},
	{"out of order within a batch", Order, func(t *tape) {
		t.call(ev{ID: "a", Key: "k", Seq: 1, Called: 7})
		t.publish(ev{ID: "b", Key: "k", Seq: 2, Called: 7})
		t.answer("a", history.KindPublished)
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2})
		t.handle("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1})
		t.stats.Published, t.stats.Fanned, t.stats.Groups[0].Received = 2, 2, 2
	}},
	{"a follower while its predecessor waits for a retry", Order, func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		c := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		t.start(c)
		t.settle(c, "retry", 0)
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2})
		t.handle("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1, Attempt: 2, Cause: causeRetry})
	}},
	{"a predecessor once more after its follower", Order, func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		c := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		t.start(c)
		t.settleCall(c, "ack", 0) // never answered
		t.mark(history.KindCrash, "consumer-1.1")
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2})
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1, Deliveries: 2, Cause: causeLease})
	}},
	{"a follower in another process while the settle is still queued", Order, func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		c := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		t.start(c)
		t.handled(c, history.HandledOK)
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2})
		t.settle(c, "ack", 0)
	}},
	{"a follower after a failure that is retried", Order, func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		c := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		d := t.claim("consumer-1.1", ev{ID: "b", Key: "k", Seq: 2})
		t.start(c)
		t.handled(c, "failed")
		t.start(d)
		t.settle(d, "ack", 0)
		t.settle(c, "retry", 0)
		t.handle("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1, Attempt: 2, Cause: causeRetry})
	}},
	{"before its delay was over", Early, func(t *tape) {
		t.publish(ev{ID: "a", Delay: int64(time.Second)})
		t.wait(900 * time.Millisecond)
		t.handle("consumer-1.1", ev{ID: "a"})
	}},
	{"before its schedule", Early, func(t *tape) {
		t.publish(ev{ID: "a", Due: t.now + brokerAhead + int64(time.Second)})
		t.handle("consumer-1.1", ev{ID: "a"})
	}},
	{"retried too soon", Early, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.settle(c, "retry", time.Second)
		t.handle("consumer-1.1", ev{ID: "a", Attempt: 2, Cause: causeRetry})
	}},
	{"after it had expired", Expired, func(t *tape) {
		t.publish(ev{ID: "a", TTL: int64(time.Second)})
		t.wait(1100 * time.Millisecond)
		t.handle("consumer-1.1", ev{ID: "a"})
	}},
	{"a crash burns an attempt", Attempts, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Attempt: 2, Deliveries: 2, Cause: causeLease})
	}},
	{"a failure burns none", Attempts, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.settle(c, "retry", 0)
		t.handle("consumer-1.1", ev{ID: "a", Attempt: 1, Cause: causeRetry})
	}},
	{"dead too soon", Attempts, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.settle(c, "dead", 0)
	}},
	{"a lost lease that was not counted", Deliveries, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 1, Cause: causeLease})
	}},
	{"a release that was counted", Deliveries, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.settle(c, "release", 0)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeReleased})
	}},
	{"a clock that was set excuses no early delivery later", Early, func(t *tape) {
		t.serverFault(history.StepClock, time.Second)
		t.publish(ev{ID: "a", Delay: int64(5 * time.Second)})
		t.handle("consumer-1.1", ev{ID: "a"})
	}},
	{"a clock that was set excuses no loss", Lost, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.serverFault(history.StepClock, time.Second)
		t.run().Exact = false
	}},
	{"a clock that was set excuses no stale settlement", StaleSettle, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.serverFault(history.StepClock, time.Second)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.settle(c, "ack", 0)
		t.run().Exact = false
	}},
	{"the power is cut long after, and an old message is gone", Lost, func(t *tape) {
		t.run().Exact = false
		t.run().MayForget = true
		t.publish(ev{ID: "a"})
		t.wait(5 * time.Second)
		t.serverFault(history.PowerCut, 100*time.Millisecond)
	}},
	{"a second loss that nobody had begun is counted", Deliveries, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.lose("consumer-1.1", ev{ID: "a"}, (*tape).start)
		t.lose("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease}, nil)
		t.handle("consumer-3.1", ev{ID: "a", Deliveries: 3, Cause: causeLease})
	}},
	{"a killer whose second death is not counted", Deliveries, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.lose("consumer-1.1", ev{ID: "a"}, (*tape).start)
		t.lose("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease}, (*tape).begin)
		t.handle("consumer-3.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	}},
	{"a handover that is counted", Deliveries, func(t *tape) {
		t.run().Heartbeat = time.Second
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeRebalance})
	}},
	{"dead of deliveries that no handler saw", Deliveries, func(t *tape) {
		t.run().MaxDeliveries = 2
		t.publish(ev{ID: "a"})
		t.lose("consumer-1.1", ev{ID: "a"}, nil)
		c := t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.add(ev{Kind: history.KindSettle, Process: c.Process, ID: c.ID, Group: group, Token: c.Token, Outcome: "dead",
			Note: "max_deliveries"})
		t.about(c, history.KindSettled)
		t.stats.Groups[0].Dead++
		t.listed("a", "dead")
	}},
	{"claimed while another held it", TwoLeases, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime / 2)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	}},
	{"an extension that was not honoured", TwoLeases, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.wait(8 * time.Second)
		t.add(ev{Kind: history.KindExtended, Process: c.Process, ID: "a", Group: group, Token: c.Token, Called: t.now})
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(3 * time.Second)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	}},
	{"a stale settle that was accepted", StaleSettle, func(t *tape) {
		t.publish(ev{ID: "a"})
		old := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(old)
		t.mark(history.KindFault, "consumer-1.1")
		t.wait(leaseTime)
		c := t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.start(c)
		t.settle(old, "ack", 0)
		t.settleCall(c, "ack", 0)
		t.about(c, history.KindSettleRefused)
	}},
	{"one lease settled twice", StaleSettle, func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.settle(c, "ack", 0)
		t.settleCall(c, "ack", 0)
		t.about(c, history.KindSettled)
	}},
	{"late after a kill", LateRedelivery, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime + 2*time.Second)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	}},
	{"a server that is back, and nobody notices", LateRecovery, func(t *tape) {
		t.serverFault("crash", time.Second)
		t.wait(3 * time.Second)
		good["published and handled"](t)
	}},
	{"acknowledged, and lost by a server that had written everything", Lost, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.serverFault("crash", time.Second)
		t.stats.Groups[0].Cancelled = 1
	}},
	{"acknowledged at a level that survives a fail-over, and lost by it", Lost, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.serverFault("failover", time.Second)
		t.stats.Groups[0].Cancelled = 1
	}},
	{"acknowledged long before a fail-over, and gone after it", Lost, func(t *tape) {
		t.run().MayForget = true
		t.publish(ev{ID: "a"})
		t.wait(10 * time.Second)
		t.serverFault("failover", time.Second)
		t.stats.Groups[0].Cancelled = 1
	}},
	{"settled, and delivered again after a server that only restarted", Unexplained, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a"})
		t.serverFault("crash", leaseTime)
		c := t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.settleCall(c, "ack", 0)
		t.about(c, history.KindSettled)
	}},
	{"a lease from before a fail-over settles after it, although another has it", StaleSettle, func(t *tape) {
		t.publish(ev{ID: "a"})
		old := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(old)
		t.serverFault("failover", time.Second)
		c := t.claim("consumer-2.1", ev{ID: "a"})
		t.start(c)
		t.settle(old, "ack", 0)
		t.settleCall(c, "ack", 0)
		t.about(c, history.KindSettleRefused)
	}},
	{"another holder before the lease of a killed one is over, in a broker that lives on", TwoLeases, func(t *tape) {
		good["the one process is killed, and the next has everything at once"](t)
		t.run().Owned = false
	}},
	{"another holder before the lease is over, although the server was killed that does not keep it", TwoLeases,
		func(t *tape) {
			good["a server that keeps the leases is killed, and all are free at once"](t)
			t.run().LeasesDie = false
		}},
	{"another holder before the lease is over, although the server that keeps it was only frozen", TwoLeases,
		func(t *tape) {
			t.run().LeasesDie = true
			t.publish(ev{ID: "a"})
			t.start(t.claim("consumer-1.1", ev{ID: "a"}))
			t.serverFault("freeze", 100*time.Millisecond)
			t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		}},
	{"the driver's own audit complains", Conservation, func(t *tape) {
		good["published and handled"](t)
		t.add(ev{Kind: history.KindProblem, ID: "a", Group: group, Note: "orphan: in no lane"})
	}},
	{"a counter that was not decremented", Conservation, func(t *tape) {
		good["published and handled"](t)
		t.stats.Groups[0].Inflight = 1
	}},
	{"bytes that stay", Conservation, func(t *tape) {
		good["published and handled"](t)
		t.stats.Bytes = 128
	}},
	{"published and not fanned out", Conservation, func(t *tape) {
		good["published and handled"](t)
		t.stats.Fanned = 0
		t.stats.Groups[0].Received, t.stats.Groups[0].Acked = 0, 0
	}},
	{"a publish that was not counted", Conservation, func(t *tape) {
		good["published and handled"](t)
		t.stats.Published, t.stats.Fanned = 2, 2
		t.stats.Groups[0].Received, t.stats.Groups[0].Cancelled = 2, 1
	}},
	{"dead and done", Conservation, func(t *tape) {
		good["published and handled"](t)
		t.listed("a", "dead")
		t.stats.Groups[0].Acked, t.stats.Groups[0].Dead = 0, 1
	}},
	{"still there after the drain", Stuck, func(t *tape) {
		t.publish(ev{ID: "a"})
		t.listed("a", "ready")
		t.stats.Groups[0].Ready = 1
	}},
}

func TestBadHistories(t *testing.T) {
	t.Parallel()
	covered := map[Kind]bool{}
	for _, c := range bad {
		covered[c.kind] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tape := newTape()
			c.write(tape)
			r := tape.check(t)
			if r.OK || r.Violations[c.kind] == 0 || len(r.Violations) != 1 {
				t.Fatalf("want %q and nothing else:\n%s", c.kind, r.Verdict())
			}
		})
	}
	for _, k := range Kinds() {
		if !covered[k] {
			t.Errorf("no bad history shows that %q can be found", k)
		}
	}
}
