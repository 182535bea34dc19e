package redisstream_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// whole tells how many claims of the partition are noted whole.
func (w *world) whole() int { return int(w.c.HLen(w.ctx(), w.part("g:default:bulk")).Val() / 2) }

func (w *world) inflight() int64 {
	w.Helper()
	st, err := w.d.Stats(w.ctx(), "jobs")
	w.ok(err)
	return st.Groups[0].Inflight
}

// A claim of plain messages is noted whole, also while parts of it are acknowledged in any order; it is noted message
// by message once one of them is looked at, and nothing is different for those who hold them.
func TestClaimIsNotedWhole(t *testing.T) {
	for _, n := range []int{10, 40} { // read by the script, and by the owner
		w := newWhole(t, n)
		ds := w.take(w.s, n)
		claims := w.whole()
		if claims == 0 || w.inflight() != int64(n) {
			t.Fatalf("%d claims are noted whole, with %d in flight", claims, w.inflight())
		}
		some := slices.Clone(ds[2:6])
		some[0], some[3] = some[3], some[0]
		w.settle(w.s, driver.Ack, some...)
		if w.whole() != claims || w.inflight() != int64(n-4) {
			t.Errorf("%d claims of %d are whole, with %d in flight", w.whole(), claims, w.inflight())
		}
		_, err := w.d.Get(w.ctx(), driver.Target{Topic: "jobs", ID: ds[0].ID})
		w.ok(err)
		if w.whole() != 0 || w.inflight() != int64(n-4) {
			t.Errorf("%d claims are still whole, with %d in flight", w.whole(), w.inflight())
		}
		w.sound()
		w.settle(w.s, driver.Ack, slices.Concat(ds[:2], ds[6:])...)
		if w.inflight() != 0 {
			t.Errorf("%d are still in flight", w.inflight())
		}
		w.sound()
	}
}

// wholeWorld is a partition with plain messages and a member.
type wholeWorld struct {
	*world
	s driver.Subscription
}

func newWhole(t *testing.T, n int) *wholeWorld {
	t.Helper()
	w := &wholeWorld{world: newWorldBeside(t)}
	w.onePartition()
	w.s = w.subscribe("a", time.Minute)
	w.publish(0, n, "")
	return w
}

// While a member is of a program of before, which does not know of claims that are noted whole, there is none.
func TestNothingIsWholeBesideOlderMembers(t *testing.T) {
	w := newWhole(t, 20)
	ds := w.take(w.s, 20)
	if w.whole() == 0 {
		t.Fatal("nothing is noted whole")
	}
	w.ok(w.c.ZAdd(w.ctx(), w.part("g:default:members"), goredis.Z{Score: 9e12, Member: "older-1"}).Err())
	w.until("what was whole is spread", func() bool {
		return w.whole() == 0 && !w.c.HExists(w.ctx(), w.part("g:default:group"), "whole").Val()
	})
	w.settle(w.s, driver.Ack, ds...)
	w.publish(20, 40, "")
	ds = w.take(w.s, 20)
	if w.whole() != 0 {
		t.Error("a claim is noted whole beside an older member")
	}
	w.settle(w.s, driver.Ack, ds...)
	w.ok(w.c.ZRem(w.ctx(), w.part("g:default:members"), "older-1").Err())
	w.sound()
}

// A program of before that finds the end of a lease of a claim that it cannot read forgets the lease. What it was of
// comes again.
func TestWholeClaimWithoutALeaseComesAgain(t *testing.T) {
	for _, late := range []bool{false, true} { // or somebody has it noted one by one before it is noticed
		w := newWhole(t, 20)
		ds := w.take(w.s, 20)
		w.ok(w.c.Del(w.ctx(), w.part("g:default:lease")).Err())
		if late {
			errs := w.s.Settle(w.ctx(), []driver.Settlement{{Delivery: ds[0], Outcome: driver.Ack}})
			if !errors.Is(errs[0], driver.ErrLeaseLost) {
				t.Errorf("a delivery without a lease is acknowledged: %v", errs[0])
			}
		}
		for _, d := range w.take(w.s, 20) {
			if d.Cause != driver.CauseLeaseExpired {
				t.Errorf("%s comes again because of %v", d.ID, d.Cause)
			}
			w.settle(w.s, driver.Ack, d)
		}
		w.sound()
	}
}

// A program of before that looks often would end every lease that is given to a claim that it cannot read before its
// owner looks: such a claim is noted one by one, which both can read.
func TestWholeClaimWithoutALeaseIsSpread(t *testing.T) {
	w := newWhole(t, 20)
	w.take(w.s, 20)
	w.ok(w.c.Del(w.ctx(), w.part("g:default:lease")).Err())
	w.until("what was whole is spread", func() bool { return w.whole() == 0 })
	for _, d := range w.take(w.s, 20) {
		w.settle(w.s, driver.Ack, d)
	}
	w.sound()
}

// Beside messages of which more is to be noted nothing is noted whole, since nothing of it could be acknowledged so.
func TestNothingIsWholeBesideOthers(t *testing.T) {
	for _, n := range []int{10, 40} { // read by the script, and by the owner
		w := newWhole(t, n)
		_, err := w.d.Publish(w.ctx(), []*driver.Message{{ID: "brief", Topic: "jobs", Body: []byte("x"), TTL: time.Hour}},
			driver.PublishOptions{})
		w.ok(err)
		ds := w.take(w.s, n+1)
		if w.whole() != 0 {
			t.Errorf("%d claims are noted whole", w.whole())
		}
		w.settle(w.s, driver.Ack, ds...)
		w.sound()
	}
}

// What was in a claim that is lost is ready again once an audit has mended it.
func TestAuditMendsALostWholeClaim(t *testing.T) {
	w := newWhole(t, 20)
	w.take(w.s, 20)
	w.ok(w.c.Del(w.ctx(), w.part("g:default:bulk")).Err())
	report, err := w.d.Audit(w.ctx(), "jobs", true)
	w.ok(err)
	if len(report.Problems) < 20 {
		t.Errorf("an audit found %+v", report.Problems)
	}
	w.sound()
	w.settle(w.s, driver.Ack, w.take(w.s, 20)...)
	w.sound()
}
