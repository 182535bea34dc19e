package checker

import (
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/test/torture/history"
)

// Histories in which everything is as promised, however rough it was.
var good = map[string]func(*tape){
	"nothing happened": func(*tape) {},
	"wiped: what was there is gone, what comes soon after may be, the rest arrives": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.serverFault(history.Wiped, 0)
		t.publish(ev{ID: "b"})
		t.publish(ev{ID: "b2"})
		t.handle("consumer-1.1", ev{ID: "b2"})
		t.wait(3 * time.Second)
		t.stats.Groups[0].Acked = 0
		t.stats.Published, t.stats.Fanned, t.stats.Groups[0].Received = 0, 0, 0
		t.run().MayForget = true
		t.publish(ev{ID: "c"})
		t.handle("consumer-1.1", ev{ID: "c"})
	},
	"a group set back gets again what it had settled": func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		t.handle("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		t.handle("consumer-1.1", ev{ID: "b", Key: "k", Seq: 2})
		t.serverFault(history.Reset, 0)
		t.handle("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1, Cause: causeReplay})
		t.handle("consumer-1.1", ev{ID: "b", Key: "k", Seq: 2, Cause: causeReplay})
		t.stats.Groups[0].Received += 2
	},
	"published and handled": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a"})
	},
	"given back before a handler saw it, and still the first": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.settle(t.claim("consumer-1.1", ev{ID: "a"}), "release", 0)
		t.handle("consumer-2.1", ev{ID: "a"})
	},
	"lost twice, the second time before a handler saw it": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime)
		t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.mark(history.KindCrash, "consumer-2.1")
		t.wait(leaseTime)
		t.handle("consumer-3.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	},
	"the broker's clock is set forward: what waits comes early, a lease is lost, and nothing else": func(t *tape) {
		t.publish(ev{ID: "a", Delay: int64(5 * time.Second)})
		t.publish(ev{ID: "b"})
		c := t.claim("consumer-1.1", ev{ID: "b"})
		t.add(ev{Kind: history.KindFault, Note: history.StepClock, Step: int64(time.Minute)})
		t.claimedBefore = -int64(time.Minute)
		t.handle("consumer-1.1", ev{ID: "a"})
		t.handle("consumer-2.1", ev{ID: "b", Deliveries: 2, Cause: causeLease})
		t.claimedBefore = 0
		t.add(ev{Kind: history.KindHeal, Note: history.StepClock})
		t.settleCall(c, "ack", 0)
		t.about(c, history.KindSettleRefused)
	},
	"the broker's clock is set forward, and a claim from before arrives after one from then": func(t *tape) {
		t.publish(ev{ID: "b"})
		t.handle("consumer-1.1", ev{ID: "b"})
		t.wait(5 * time.Second)
		t.publish(ev{ID: "a"})
		t.add(ev{Kind: history.KindFault, Note: history.StepClock, Step: int64(time.Minute)})
		before := t.now
		t.claimedBefore = -int64(time.Minute)
		again := t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.claimedBefore = t.now - before + int64(time.Millisecond)
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.claimedBefore = 0
		t.start(again)
		t.settle(again, "ack", 0)
		t.add(ev{Kind: history.KindHeal, Note: history.StepClock})
		t.settleCall(c, "ack", 0)
		t.about(c, history.KindSettleRefused)
	},
	"the power is cut: what was not synced is gone, and what was handled comes again": func(t *tape) {
		t.run().MayForget = true
		t.publish(ev{ID: "a"})
		t.wait(5 * time.Second)
		t.serverFault(history.PowerCut, 100*time.Millisecond)
		t.handle("consumer-1.1", ev{ID: "a"})
		t.publish(ev{ID: "b"})
		t.handle("consumer-1.1", ev{ID: "b"})
		t.stats.Published, t.stats.Fanned, t.stats.Groups[0].Received = 2, 2, 2
	},
	"killed between the begin and the handler: a loss of a key that counts": func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.lose("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1}, nil)
		t.lose("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1, Deliveries: 2, Cause: causeLease},
			func(t *tape, c ev) { t.about(c, history.KindBegin) })
		t.claimedBefore = int64(time.Millisecond) // it takes a while to arrive
		t.handle("consumer-3.1", ev{ID: "a", Key: "k", Seq: 1, Deliveries: 3, Cause: causeLease})
	},
	"kill, then redelivery when the lease is over": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	},
	"a killer counts each death that it had begun": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.lose("consumer-1.1", ev{ID: "a"}, (*tape).start)
		t.lose("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease}, (*tape).begin)
		t.lose("consumer-3.1", ev{ID: "a", Deliveries: 3, Cause: causeLease}, nil)
		t.handle("consumer-4.1", ev{ID: "a", Deliveries: 3, Cause: causeLease})
	},
	"a holder that speaks late takes its count back": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.lose("consumer-1.1", ev{ID: "a"}, (*tape).start)
		old := t.claim("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.begin(old)
		t.mark(history.KindFault, "consumer-2.1")
		t.wait(leaseTime)
		c := t.claim("consumer-3.1", ev{ID: "a", Deliveries: 3, Cause: causeLease})
		t.begin(c)
		t.mark(history.KindHeal, "consumer-2.1")
		t.settleCall(old, "ack", 0)
		t.about(old, history.KindSettleRefused)
		t.settle(c, "retry", 0)
		t.handle("consumer-3.1", ev{ID: "a", Attempt: 2, Deliveries: 2, Cause: causeRetry})
	},
	"kill of one whose claim, of what was lost before, no history knows": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.lose("consumer-1.1", ev{ID: "a"}, (*tape).start)
		t.wait(time.Second)
		t.mark(history.KindCrash, "consumer-2.1")
		t.wait(leaseTime)
		t.handle("consumer-3.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	},
	"given back before a handler saw it: the cause stays": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.settle(t.claim("consumer-1.1", ev{ID: "a"}), "release", 0)
		c := t.claim("consumer-2.1", ev{ID: "a"})
		t.start(c)
		t.settle(c, "retry", 0)
		t.settle(t.claim("consumer-2.1", ev{ID: "a", Attempt: 2, Cause: causeRetry}), "release", 0)
		t.handle("consumer-1.1", ev{ID: "a", Attempt: 2, Cause: causeRetry})
	},
	"kill of a holder that no history knows": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	},
	"pause beyond the leaseTime, the late settle is refused": func(t *tape) {
		t.publish(ev{ID: "a"})
		old := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(old)
		t.mark(history.KindFault, "consumer-1.1")
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
		t.mark(history.KindHeal, "consumer-1.1")
		t.settleCall(old, "ack", 0)
		t.about(old, history.KindSettleRefused)
	},
	"paused between claim and start: the stale start breaks no order": func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		old := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		t.mark(history.KindFault, "consumer-1.1")
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1, Deliveries: 2, Cause: causeLease})
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2})
		t.start(old)
	},
	"a stall of the whole machine takes a lease, even where no duplicates are promised": func(t *tape) {
		t.run().NoDuplicates = true
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.add(ev{Kind: history.KindFault, Note: history.Stall})
		t.wait(leaseTime)
		t.add(ev{Kind: history.KindHeal, Note: history.Stall})
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	},
	"a broker whose clock was read before it waited: the tokens tell the order": func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a", Token: "n-9"})
		t.start(c)
		t.settle(c, "retry", 0)
		t.claimedBefore = int64(time.Second)
		d := t.claim("consumer-1.1", ev{ID: "a", Token: "n-10", Attempt: 2, Cause: causeRetry})
		t.start(d)
		t.settle(d, "ack", 0)
	},
	"a fail-over loses a settlement: delivered again as if for the first time": func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.settleCall(c, "ack", 0)
		t.about(c, history.KindSettled)
		t.serverFault("failover", time.Second)
		t.handle("consumer-2.1", ev{ID: "a"})
	},
	"a fail-over loses what was acknowledged at a level that does not survive it": func(t *tape) {
		t.run().MayForget = true
		t.call(ev{ID: "a"})
		t.answer("a", history.KindPublished)
		t.serverFault("failover", time.Second)
	},
	"a server is killed that had not written what it acknowledged": func(t *tape) {
		t.call(ev{ID: "a"})
		t.answer("a", history.KindPublished)
		t.add(ev{Kind: history.KindFault, Note: "crash"})
		t.add(ev{Kind: history.KindFault, Note: history.Unwritten})
		t.add(ev{Kind: history.KindHeal, Note: history.Unwritten})
		t.wait(time.Second)
		t.add(ev{Kind: history.KindHeal, Note: "crash"})
	},
	"the one process is killed, and the next has everything at once": func(t *tape) {
		t.run().Owned = true
		t.publish(ev{ID: "a"})
		t.start(t.claim("app-1.1", ev{ID: "a"}))
		t.mark(history.KindCrash, "app-1.1")
		t.handle("app-1.2", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	},
	"a server that keeps the leases is killed, and all are free at once": func(t *tape) {
		t.run().LeasesDie = true
		t.publish(ev{ID: "a"})
		t.start(t.claim("consumer-1.1", ev{ID: "a"}))
		t.serverFault(history.ServerCrash, 100*time.Millisecond)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	},
	"a server comes back, and work goes on": func(t *tape) {
		t.serverFault("crash", time.Second)
		t.wait(time.Second)
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a"})
	},
	"failure, retry, dead letter": func(t *tape) {
		t.publish(ev{ID: "a"})
		for attempt := 1; attempt <= 3; attempt++ {
			cause := causeRetry
			if attempt == 1 {
				cause = causeFirst
			}
			c := t.claim("consumer-1.1", ev{ID: "a", Attempt: attempt, Cause: cause})
			t.start(c)
			if attempt < 3 {
				t.settle(c, "retry", time.Second)
				t.wait(time.Second)
			} else {
				t.settle(c, "dead", 0)
			}
		}
	},
	"a publish whose answer was lost, stored": func(t *tape) {
		t.call(ev{ID: "a"})
		t.answer("a", history.KindUnknown)
		t.handle("consumer-1.1", ev{ID: "a"})
		t.stats.Published, t.stats.Fanned, t.stats.Groups[0].Received = 1, 1, 1
	},
	"a publish whose producer was killed, not stored": func(t *tape) {
		t.call(ev{ID: "a"})
		t.mark(history.KindCrash, "producer-1.1")
	},
	"unknown, tried again, acknowledged: one message": func(t *tape) {
		t.call(ev{ID: "a"})
		t.answer("a", history.KindUnknown)
		t.publish(ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "a"})
	},
	"released on stop": func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.mark(history.KindClose, "consumer-1.1")
		_ = c
		t.handle("consumer-2.1", ev{ID: "a", Cause: causeReleased})
	},
	"a retry returns the rest of its key": func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		head := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		t.claim("consumer-1.1", ev{ID: "b", Key: "k", Seq: 2})
		t.start(head)
		t.settle(head, "retry", 0)
		t.handle("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1, Attempt: 2, Cause: causeRetry})
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2, Cause: causeReleased})
	},
	"a lost lease returns the rest of its key before their own end": func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		t.start(t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1}))
		t.wait(leaseTime / 2)
		t.claim("consumer-1.1", ev{ID: "b", Key: "k", Seq: 2})
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime / 2)
		t.handle("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1, Deliveries: 2, Cause: causeLease})
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2, Cause: causeReleased})
	},
	"a retry that was given back before it ran is no duplicate": func(t *tape) {
		t.run().NoDuplicates = true
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.settle(c, "retry", 0)
		c = t.claim("consumer-1.1", ev{ID: "a", Attempt: 2, Cause: causeRetry})
		t.settle(c, "release", 0)
		t.handle("consumer-2.1", ev{ID: "a", Attempt: 2, Cause: causeReleased})
	},
	"given back, then claimed by a process that dies before it says so": func(t *tape) {
		t.publish(ev{ID: "a"})
		t.claim("consumer-1.1", ev{ID: "a"})
		t.mark(history.KindClose, "consumer-1.1")
		t.mark(history.KindCrash, "consumer-3.1")
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Deliveries: 2, Cause: causeLease})
	},
	"order of a key, settle called before the next starts": func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		c := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		d := t.claim("consumer-1.1", ev{ID: "b", Key: "k", Seq: 2})
		t.start(c)
		t.settleCall(c, "ack", 0)
		t.start(d) // the answer of the first is still on its way
		t.about(c, history.KindSettled)
		t.settle(d, "ack", 0)
		t.stats.Groups[0].Acked++
	},
	"a settle that is queued while the next of its key starts": func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		c := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		d := t.claim("consumer-1.1", ev{ID: "b", Key: "k", Seq: 2})
		t.start(c)
		t.handled(c, history.HandledOK)
		t.start(d)
		t.settle(c, "ack", 0)
		t.settle(d, "ack", 0)
	},
	"killed with settles queued: the run comes again, in order": func(t *tape) {
		t.publish(ev{ID: "a", Key: "k", Seq: 1})
		t.publish(ev{ID: "b", Key: "k", Seq: 2})
		c := t.claim("consumer-1.1", ev{ID: "a", Key: "k", Seq: 1})
		d := t.claim("consumer-1.1", ev{ID: "b", Key: "k", Seq: 2})
		t.start(c)
		t.handled(c, history.HandledOK)
		t.start(d)
		t.mark(history.KindCrash, "consumer-1.1")
		t.wait(leaseTime)
		t.handle("consumer-2.1", ev{ID: "a", Key: "k", Seq: 1, Deliveries: 2, Cause: causeLease})
		t.handle("consumer-2.1", ev{ID: "b", Key: "k", Seq: 2, Deliveries: 2, Cause: causeLease})
	},
	"an extended lease": func(t *tape) {
		t.publish(ev{ID: "a"})
		c := t.claim("consumer-1.1", ev{ID: "a"})
		t.start(c)
		t.wait(8 * time.Second)
		t.add(ev{Kind: history.KindExtended, Process: c.Process, ID: "a", Group: group, Token: c.Token, Called: t.now})
		t.wait(8 * time.Second)
		t.settle(c, "ack", 0)
	},
	"delayed, and scheduled": func(t *tape) {
		t.publish(ev{ID: "a", Delay: int64(time.Second)})
		t.publish(ev{ID: "b", Due: t.now + brokerAhead + int64(time.Second)})
		t.wait(time.Second)
		t.handle("consumer-1.1", ev{ID: "a"})
		t.handle("consumer-1.1", ev{ID: "b"})
	},
	"expired, never delivered": func(t *tape) {
		t.publish(ev{ID: "a", TTL: int64(time.Second)})
		t.stats.Groups[0].Expired++
	},
}

func TestGoodHistories(t *testing.T) {
	t.Parallel()
	for name, write := range good {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tape := newTape()
			write(tape)
			if r := tape.check(t); !r.OK {
				t.Fatalf("a good history was condemned:\n%s", r.Verdict())
			}
		})
	}
}

func TestFiguresOfAReport(t *testing.T) {
	t.Parallel()
	tape := newTape()
	good["kill, then redelivery when the lease is over"](tape)
	r := tape.check(t)
	if r.Published != 1 || r.Delivered != 2 || r.Acked != 1 || r.Crashes != 1 || r.Duplicates[causeLease] != 1 {
		t.Errorf("wrong figures: %+v", r)
	}
	if r.Redelivery.N != 1 || r.Redelivery.Max < leaseTime || r.Redelivery.Max > leaseTime+10*time.Millisecond {
		t.Errorf("redelivery %+v, want one of about %v", r.Redelivery, leaseTime)
	}
	if v := r.Verdict(); !strings.Contains(v, "clean") || !strings.Contains(v, "1 lease_expired (50.00 % of the starts)") {
		t.Errorf("verdict %q", v)
	}
}

func TestNoRun(t *testing.T) {
	t.Parallel()
	if _, err := Check([]ev{{Kind: history.KindPublish}}); err == nil {
		t.Fatal("histories without a run were judged")
	}
}
