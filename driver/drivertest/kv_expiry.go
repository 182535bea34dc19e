package drivertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// kvExpires: by the backend's clock, not before its time, and what comes after is a new one.
func kvExpires(t *T) {
	due := time.Now().Add(2 * unit)
	first := t.set(driver.Write{Name: "a", Data: []byte("one"), TTL: 2 * unit})
	t.before(due, func() {
		if v := t.value("a"); v.Left <= 0 || v.Left > 2*unit+t.resolution() {
			t.Errorf("%v are left", v.Left)
		}
		t.pass(3 * unit / 2)
		t.holds("a", "one", first)
	})
	t.ends("a", first, due)
	if r := t.apply(driver.Write{Name: "a", If: driver.Condition(first.Revision)}); !errors.Is(r.Err,
		driver.ErrConflict) || r.Revision != 0 {
		t.Errorf("the revision of what expired: %+v", r)
	}
	second := t.set(driver.Write{Name: "a", If: driver.Absent})
	if second.Epoch != second.Revision || second.Revision <= first.Revision {
		t.Errorf("%+v after %+v", second, first)
	}
	page, err := t.kv().List(t.ctx(), driver.KVQuery{Bucket: bucket})
	t.ok(err, "List")
	if len(page.Values) != 1 || page.Values[0].Left != 0 {
		t.Errorf("%+v", page)
	}
}

// kvRenewed: writing again moves the end and keeps the epoch.
func kvRenewed(t *T) {
	first := t.set(driver.Write{Name: "a", TTL: 2 * unit})
	t.pass(unit)
	due := time.Now().Add(2 * unit)
	second := t.set(driver.Write{Name: "a", TTL: 2 * unit, If: driver.Condition(first.Revision)})
	t.equal(second.Epoch, first.Epoch, "epoch of what was renewed")
	t.before(due, func() { t.holds("a", "", second) })
	t.ends("a", second, due)
	third := t.set(driver.Write{Name: "a", TTL: time.Hour})
	t.set(driver.Write{Name: "a"})
	if v := t.value("a"); v.Left != 0 || v.Epoch != third.Epoch {
		t.Errorf("written without a TTL it is %+v", v)
	}
}

// kvFences: what is written under a lease is refused as soon as the lease is another's.
func kvFences(t *T) {
	lease := t.set(driver.Write{Name: "lease", Data: []byte("me"), TTL: 2 * unit, If: driver.Absent})
	fence := &driver.Fence{Name: "lease", Epoch: lease.Epoch}
	t.set(driver.Write{Name: "a", Data: []byte("mine"), Fence: fence})
	renewed := t.set(driver.Write{Name: "lease", Data: []byte("me"), TTL: 2 * unit, If: driver.Condition(lease.Revision),
		Fence: fence})
	mine := t.set(driver.Write{Name: "a", Data: []byte("still"), Fence: fence})
	t.until("the lease ends", func() bool { return t.value("lease").Revision == 0 })
	if r := t.apply(driver.Write{Name: "a", Data: []byte("late"), Fence: fence}); !errors.Is(r.Err, driver.ErrLeaseLost) {
		t.Errorf("a write under a lease that has ended: %+v", r)
	}
	taken := t.set(driver.Write{Name: "lease", Data: []byte("you"), TTL: time.Hour, If: driver.Absent})
	if taken.Epoch == lease.Epoch || taken.Revision <= renewed.Revision {
		t.Errorf("%+v after %+v", taken, renewed)
	}
	for _, w := range []driver.Write{{Name: "a", Data: []byte("late"), Fence: fence},
		{Name: "a", Delete: true, Fence: fence},
		{Name: "a", If: driver.Condition(mine.Revision), Fence: fence}} {
		if r := t.apply(w); !errors.Is(r.Err, driver.ErrLeaseLost) {
			t.Errorf("a write under another's lease: %+v", r)
		}
	}
	t.holds("a", "still", mine)
}

// kvFenceInsideTheStep: once a lease is another's, nothing written under the old one gets a revision behind it, however
// the two meet.
func kvFenceInsideTheStep(t *T) {
	const writers, changes = 4, 10
	ctx := t.ctx()
	for range changes {
		t.set(driver.Write{Name: "lease", Delete: true})
		lease := t.set(driver.Write{Name: "lease", If: driver.Absent})
		fence := &driver.Fence{Name: "lease", Epoch: lease.Epoch}
		var mu sync.Mutex
		var newest uint64
		var wg sync.WaitGroup
		begun := make(chan struct{}, writers)
		for i := range writers {
			wg.Go(func() {
				for n := range 10_000 {
					r := t.kv().Apply(ctx, bucket, driver.KVOptions{}, driver.Write{Name: fmt.Sprint("a", i), Fence: fence})[0]
					if n == 0 {
						begun <- struct{}{}
					}
					if r.Err != nil {
						if !errors.Is(r.Err, driver.ErrLeaseLost) {
							t.Errorf("Apply: %v", r.Err)
						}
						return
					}
					mu.Lock()
					newest = max(newest, r.Revision)
					mu.Unlock()
				}
			})
		}
		for range writers {
			<-begun
		}
		rs := t.kv().Apply(t.ctx(), bucket, driver.KVOptions{}, driver.Write{Name: "lease", Delete: true},
			driver.Write{Name: "lease", If: driver.Absent})
		t.ok(errors.Join(rs[0].Err, rs[1].Err), "taking the lease")
		wg.Wait()
		if newest > rs[1].Revision {
			t.Errorf("a write under the old lease has revision %d, behind %d, where the lease was taken", newest, rs[1].Revision)
		}
	}
}

// kvSurvives: values, revisions, requests and what is left of a TTL survive a restart; nothing deleted comes back.
func kvSurvives(t *T) {
	t.survives()
	kept := t.set(driver.Write{Name: "kept", Data: []byte("one"), Request: "r"})
	due := time.Now().Add(4 * unit)
	lease := t.set(driver.Write{Name: "lease", TTL: 4 * unit})
	t.set(driver.Write{Name: "gone"})
	t.set(driver.Write{Name: "gone", Delete: true})
	last := t.set(driver.Write{Name: "last"})
	t.set(driver.Write{Name: "last", Delete: true, Request: "d"})
	t.set(driver.Write{Name: "nothing", Delete: true, Request: "e"})
	t.restart()
	t.holds("kept", "one", kept)
	t.absent("gone")
	t.absent("last")
	t.before(due, func() {
		if v := t.value("lease"); v.Epoch != lease.Epoch || v.Left <= 0 || v.Left > 4*unit+t.resolution() {
			t.Errorf("%+v", v)
		}
	})
	if again := t.set(driver.Write{Name: "kept", Data: []byte("one"), Request: "r"}); again.Revision != kept.Revision {
		t.Errorf("repeated after a restart it has revision %d, was %d", again.Revision, kept.Revision)
	}
	since := t.set(driver.Write{Name: "nothing"})
	t.set(driver.Write{Name: "nothing", Delete: true, Request: "e"})
	t.holds("nothing", "", since)
	if next := t.set(driver.Write{Name: "next"}); next.Revision <= kept.Revision || next.Revision <= lease.Revision ||
		next.Revision <= last.Revision {
		t.Errorf("%+v after a restart, before which there was %+v", next, lease)
	}
	t.ends("lease", lease, due)
}
