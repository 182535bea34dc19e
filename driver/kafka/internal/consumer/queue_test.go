package consumer

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// TestExpiredFollowerIsNotClaimed: a message that has expired is not part of the run of its key, and is left to the
// clock when its turn comes.
func TestExpiredFollowerIsNotClaimed(t *testing.T) {
	t.Parallel()
	m, head := ownedItem(t)
	now := time.Now()
	behind := &Item{p: head.p, offset: 4, ends: now.Add(time.Minute),
		Msg: &driver.Message{ID: "b", Topic: "orders", Key: "k", TTL: time.Minute}}
	s := &subscription{m: m, o: driver.SubscribeOptions{Lease: time.Hour, MaxRun: 2},
		holder: scheduler.NewHolder[Item](driver.DefaultWeights, false)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.add(behind)
	claims := m.take(s, 2, now.Add(time.Minute))
	if len(claims) != 1 || claims[0].it != head {
		t.Fatalf("%d claims, want only the head", len(claims))
	}
	m.end(claims[0])
	m.remove(head)
	if claims := m.take(s, 2, now.Add(time.Minute)); len(claims) != 0 || behind.state != waiting {
		t.Errorf("%d claims of what has expired, which is in state %d", len(claims), behind.state)
	}
}

// TestExpiringInRelaxedOrder: a message whose end is being stored keeps its key from others in strict order only.
func TestExpiringInRelaxedOrder(t *testing.T) {
	t.Parallel()
	for order, want := range map[driver.Order]int{driver.Strict: 0, driver.Relaxed: 1} {
		m, head := ownedItem(t)
		m.order = order
		behind := &Item{p: head.p, offset: 4, Msg: &driver.Message{ID: "b", Topic: "orders", Key: "k"}}
		s := &subscription{m: m, o: driver.SubscribeOptions{Lease: time.Hour, MaxRun: 2},
			holder: scheduler.NewHolder[Item](driver.DefaultWeights, false)}
		m.mu.Lock()
		m.add(behind)
		m.enter(head, inflight)
		m.withhold(head)
		if claims := m.take(s, 2, time.Now()); len(claims) != want {
			t.Errorf("%s order: %d claims behind it, want %d", order, len(claims), want)
		}
		m.mu.Unlock()
	}
}

// TestGoingKeepsItsWait: what waits for a retry when its partition goes is still what waits, for operators and for what
// is stored of it, and neither its time nor its return has it handed out here again.
func TestGoingKeepsItsWait(t *testing.T) {
	t.Parallel()
	m, it := ownedItem(t)
	s := &subscription{m: m, o: driver.SubscribeOptions{Lease: time.Hour, MaxRun: 2},
		holder: scheduler.NewHolder[Item](driver.DefaultWeights, false)}
	m.mu.Lock()
	it.due = time.Now().Add(time.Minute)
	m.wait(it)
	m.stopOffering([]int32{0})
	if it.EntryState() != driver.StateWaiting || it.p.current().Waiting != 1 {
		t.Errorf("it is %s, and %d wait", it.EntryState(), it.p.current().Waiting)
	}
	m.mu.Unlock()
	m.ringDue(it.due)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.offer(it)
	if claims := m.take(s, 1, it.due); len(claims) != 0 || it.p.current().Ready != 1 {
		t.Errorf("%d claims of what goes, and %d are ready for the next owner", len(claims), it.p.current().Ready)
	}
}
