package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// begin demands that the start of a handler is recorded.
func begin(t testing.TB, s *subscription, ds ...*driver.Delivery) {
	t.Helper()
	for i, err := range s.Begin(context.Background(), ds) {
		if err != nil {
			t.Fatalf("Begin of %s: %v", ds[i].ID, err)
		}
	}
}

// receive receives one delivery, and demands how it is counted.
func receive(t testing.TB, s *subscription, deliveries int) *driver.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	ds, err := s.Receive(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if ds[0].Deliveries != deliveries {
		t.Errorf("%s comes with deliveries %d, want %d", ds[0].ID, ds[0].Deliveries, deliveries)
	}
	return ds[0]
}

// crashed opens what is left of a store when its process ends without closing it.
func crashed(t testing.TB, s *mapStore) *Engine {
	t.Helper()
	left := newMapStore()
	s.mu.Lock()
	left.records = maps.Clone(s.records)
	s.mu.Unlock()
	e := New(storeOptions(left, 4))
	if err := e.Restore(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close(context.Background()) })
	return e
}

// TestCrashCountsWhatHadBegun: of losses after the first, a crash counts those whose handler had begun. That another
// delivery of the message had begun does not matter.
func TestCrashCountsWhatHadBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newMapStore()
		e := New(storeOptions(store, 4))
		s := subscribe(t, e, driver.SubscribeOptions{Lease: time.Second})
		for i := range 3 {
			publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i)})
		}
		var ds []*driver.Delivery
		for range 3 {
			ds = append(ds, receive(t, s, 1))
		}
		time.Sleep(1100 * time.Millisecond) // the first loss of each
		ds = ds[:0]
		for range 3 {
			ds = append(ds, receive(t, s, 2))
		}
		begin(t, s, ds[0], ds[1])
		settle(t, s, driver.Release, 0, ds[1])
		ds[1] = receive(t, s, 2) // has not begun again
		again := crashed(t, store)
		for _, want := range []int{3, 2, 2} {
			d := receive(t, subscribe(t, again, driver.SubscribeOptions{}), want)
			if d.Cause != driver.CauseLeaseExpired {
				t.Errorf("%s comes as %s", d.ID, d.Cause)
			}
		}
		if st, err := again.Stats(context.Background(), "t"); err != nil || st.Groups[0].Redelivered != 6 {
			t.Errorf("%d leases were lost, want 6 (%v)", st.Groups[0].Redelivered, err)
		}
		_ = e.Close(context.Background())
	})
}

// TestTakenBackIsStored: what a late word took back is not counted after a crash, and the loss is still not the first.
func TestTakenBackIsStored(t *testing.T) {
	t.Parallel()
	words := map[string]func(s *subscription, d *driver.Delivery) error{
		"extend": func(s *subscription, d *driver.Delivery) error {
			return s.Extend(context.Background(), []*driver.Delivery{d})[0]
		},
		"settle": func(s *subscription, d *driver.Delivery) error {
			return s.Settle(context.Background(), []driver.Settlement{{Delivery: d}})[0]
		},
		"settle and emit": func(s *subscription, d *driver.Delivery) error {
			return s.Settle(context.Background(),
				[]driver.Settlement{{Delivery: d, Emit: []*driver.Message{{ID: "e", Topic: "t"}}}})[0]
		},
		"close": func(s *subscription, _ *driver.Delivery) error {
			return errors.Join(driver.ErrLeaseLost, s.Close(context.Background()))
		},
	}
	for name, speak := range words {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newMapStore()
				e := New(storeOptions(store, 4))
				s := subscribe(t, e, driver.SubscribeOptions{Lease: time.Second})
				publish(t, e, &driver.Message{Topic: "t", ID: "a"})
				d := receive(t, s, 1)
				begin(t, s, d)
				time.Sleep(1100 * time.Millisecond)
				if err := speak(s, d); !errors.Is(err, driver.ErrLeaseLost) {
					t.Errorf("the late word was answered with %v", err)
				}
				again := crashed(t, store)
				s = subscribe(t, again, driver.SubscribeOptions{Lease: time.Second})
				receive(t, s, 1)
				time.Sleep(1100 * time.Millisecond)
				receive(t, s, 1) // a second loss, and it had not begun
				audit(t, again)
				_ = e.Close(context.Background())
			})
		})
	}
}

// TestLatestLossesAreKnown: of many holders that come back late, the latest are listened to.
func TestLatestLossesAreKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := open(t)
		s := subscribe(t, e, driver.SubscribeOptions{Lease: time.Second})
		publish(t, e, &driver.Message{Topic: "t", ID: "a"})
		var ds []*driver.Delivery
		for n := range mostLosses + 4 {
			ds = append(ds, receive(t, s, n+1))
			begin(t, s, ds[n])
			time.Sleep(1100 * time.Millisecond)
		}
		d := receive(t, s, mostLosses+5)
		for range 2 { // a second time changes nothing
			s.Extend(context.Background(), ds)
		}
		settle(t, s, driver.Release, 0, d)
		d = receive(t, s, 5)
		settle(t, s, driver.Ack, 0, d)
	})
}

// stateOf is the record of where a message is.
func stateOf(e *entry, now moment) []byte {
	var s storedState
	s.of(e, now)
	return written(&s, now)
}

// written is a record.
func written(r storedRecord, now moment) []byte { return new(walk).write(r, now) }

// resealed is a record that was changed, with the right checksum.
func resealed(record []byte) []byte { return (&walk{data: record[:len(record)-4]}).seal() }

// TestOldStateIsRead: records of items without additions are as they were, and read as such.
func TestOldStateIsRead(t *testing.T) {
	t.Parallel()
	e := New(testOptions())
	now := e.now()
	tp := newTopic(e, "t")
	tp.addGroup("default", driver.Strict, true)
	en := e.newEntry(&driver.Message{ID: "a"}, now)
	tp.store(en, now)
	it := en.items
	it.loseLease(false)
	record := stateOf(en, now)
	if record[0] != recordVersion {
		t.Errorf("version %d is stored for a message that older programs understand", record[0])
	}
	var s storedState
	err := s.read(record, now)
	if err != nil || s.items[0].lost != 1 || !s.items[0].is(leaseLost) || s.items[0].begunClaim != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	it.claim, it.state = &claim{number: 77, begun: true}, inflight
	record = stateOf(en, now)
	err = s.read(record, now)
	if err != nil || record[0] != lossesVersion || s.items[0].begunClaim != 77 {
		t.Errorf("version %d: %+v, %v", record[0], s, err)
	}
	record[0] = recordVersion
	if s.read(resealed(record), now) == nil {
		t.Error("the old version accepts what it does not know")
	}
	it.claim, it.state = nil, done
	it.record().ending = ending{known: true, took: time.Second, by: "host-7"}
	ended := stateOf(en, now)
	err = s.read(ended, now)
	if err != nil || ended[0] != stateVersion || s.items[0].more.ending != it.more.ending {
		t.Errorf("version %d: %+v, %v", ended[0], s, err)
	}
	ended[0] = lossesVersion
	if s.read(resealed(ended), now) == nil {
		t.Error("the version before accepts what it does not know")
	}
	record[0] = stateVersion + 1
	if s.read(resealed(record), now) == nil {
		t.Error("a newer version is accepted")
	}
}

// TestDrainHandsAWakeUpOn: a call that is woken for a message while its subscription is drained leaves it to another.
func TestDrainHandsAWakeUpOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := open(t)
		a, b := subscribe(t, e, driver.SubscribeOptions{}), subscribe(t, e, driver.SubscribeOptions{})
		got := make(chan error, 2)
		for _, s := range []*subscription{a, b} {
			go func() {
				_, err := s.Receive(context.Background(), 1)
				got <- err
			}()
			synctest.Wait() // a waits longer, and is woken first
		}
		now := e.now()
		a.t.mu.Lock()
		a.drained = true
		e.stored.Add(1)
		a.t.store(e.newEntry(&driver.Message{ID: "x"}, now), now)
		a.t.unlock(now)
		if err := <-got; !errors.Is(err, driver.ErrClosed) {
			t.Errorf("the drained one got %v", err)
		}
		if err := <-got; err != nil {
			t.Errorf("the other one got %v", err)
		}
	})
}
