package consumer

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// TestClaimNobodySaw: a claim that waits for its commit ends before it was delivered. Whatever ended it, the message is
// what it was before: nobody had it, nobody gave it back, and no lease was lost. The same of claims that were delivered
// is told.
func TestClaimNobodySaw(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(m *member, s *subscription, now time.Time)
		head driver.Cause // of the first message of the key, if it was delivered
		lost int
	}{
		"closed": {func(_ *member, s *subscription, now time.Time) { s.giveUp(now) }, driver.CauseReleased, 0},
		"lease is over": {func(m *member, s *subscription, now time.Time) { m.endLeases(s, now.Add(s.o.Lease)) },
			driver.CauseLeaseExpired, 1},
	} {
		for _, delivered := range []bool{false, true} {
			m, head := ownedItem(t)
			behind := &Item{p: head.p, offset: 4, Msg: &driver.Message{ID: "b", Topic: "orders", Key: "k"}}
			s := &subscription{m: m, o: driver.SubscribeOptions{Lease: time.Minute, MaxRun: 2},
				holder: scheduler.NewHolder[Item](driver.DefaultWeights, false)}
			now := time.Now()
			m.mu.Lock()
			m.add(behind)
			claims := m.take(s, 2, now)
			if len(claims) != 2 {
				t.Fatalf("%d claims of a run of two", len(claims))
			}
			if delivered {
				for _, c := range claims {
					s.deliver(c, now)
				}
			}
			c.end(m, s, now)
			m.mu.Unlock()
			wantHead, wantBehind, lost := driver.CauseFirst, driver.CauseFirst, 0
			if delivered {
				wantHead, wantBehind, lost = c.head, c.head, c.lost
			}
			if head.cause != wantHead || behind.cause != wantBehind || head.lost != lost || behind.lost != 0 {
				t.Errorf("%s, delivered %v: the head comes as %s with %d lost, the one behind it as %s with %d", name, delivered,
					head.cause, head.lost, behind.cause, behind.lost)
			}
			if head.state != ready || behind.state != ready || head.p.leased != 0 {
				t.Errorf("%s, delivered %v: they are in states %d and %d, %d held", name, delivered, head.state, behind.state,
					head.p.leased)
			}
		}
	}
}

// TestHoldersHaveDeliveries: a partition goes while one of its claims is delivered and another waits for its commit.
// Only what was delivered can be settled, and only it is committed as held.
func TestHoldersHaveDeliveries(t *testing.T) {
	t.Parallel()
	m, seen := ownedItem(t)
	unseen := &Item{p: seen.p, offset: 4, Msg: &driver.Message{ID: "b", Topic: "orders", Key: "other"}}
	s := &subscription{m: m, o: driver.SubscribeOptions{Lease: time.Minute, MaxRun: 1},
		holder: scheduler.NewHolder[Item](driver.DefaultWeights, false)}
	m.mu.Lock()
	defer m.mu.Unlock()
	seen.p.items.put(unseen)
	m.add(unseen)
	for _, c := range m.take(s, 2, time.Now()) {
		if c.it == seen {
			s.deliver(c, time.Now())
		}
	}
	if held := holders([]*partition{seen.p}); len(held) != 1 || len(held[s]) != 1 || held[s][0] == nil ||
		held[s][0].ID != "a" {
		t.Errorf("they are told to settle %v", held)
	}
	for _, last := range []bool{false, true} {
		seen.p.over = last
		next := offsets.NewSet(0)
		next.ReadMetadata(seen.p.metadata())
		if told := next.Before[offsets.Location{Retry: false, Offset: 4}] == offsets.LeasedPart; told == last {
			t.Errorf("last word %v: what waits for its commit is held: %v", last, told)
		}
		if next.Before[offsets.Location{Retry: true, Offset: seen.logOffset}] != offsets.LeasedPart {
			t.Errorf("last word %v: what was delivered is not held", last)
		}
	}
}
