package consumer

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
)

// TestVouchedInARebalance: an answer in a rebalance is good for one session, as any other, but no longer than the group
// waits for those who have not joined again.
func TestVouchedInARebalance(t *testing.T) {
	t.Parallel()
	d := bareGroups(6 * time.Second)
	m := d.newMember(&registry.TopicState{Name: "orders"}, driver.DefaultGroup, driver.Strict)
	we, start := cluster.Identity{ID: "we", Generation: 7}, time.Now()
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	until := func(want float64) {
		t.Helper()
		if !m.vouched(at(want-0.1)) || m.vouched(at(want)) {
			t.Errorf("vouched until %v, want %v s", m.sure.Sub(start), want)
		}
	}
	become := func(as cluster.Identity) {
		m.ID, m.Generation = as.ID, as.Generation
		m.rejoined()
	}
	if m.answered(at(0), true, we); !m.sure.Before(at(0)) {
		t.Errorf("a generation whose assignment is not known vouches until %v", m.sure.Sub(start))
	}
	become(we)
	m.answered(at(1), true, we)
	until(7)
	m.answered(at(10), false, we) // a rebalance began after 1 s
	until(16)
	m.answered(at(18), false, we)
	until(21) // by then it may be over without us
	next := cluster.Identity{ID: "we", Generation: 8}
	m.answered(at(20), true, next)
	until(21) // we have joined, and do not know our part yet
	m.answered(at(20.5), false, next)
	until(21) // and the one after that has begun
	become(next)
	m.answered(at(35), false, next)
	until(40) // that one began after 20 s
	m.answered(at(39), true, next)
	until(45)
	m.answered(at(38), false, next) // late
	until(45)
	m.answered(at(57), false, next)
	become(cluster.Identity{ID: "we", Generation: 9})
	// one rebalance after the other: when it was asked at 57 s this one had not begun
	m.answered(at(58), false, cluster.Identity{ID: "we", Generation: 9})
	until(64)
}
