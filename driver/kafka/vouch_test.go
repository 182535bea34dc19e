package kafka

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestVouchedInARebalance: an answer in a rebalance is good for one session, as any other, but no longer than the group waits for those who have not joined again.
func TestVouchedInARebalance(t *testing.T) {
	t.Parallel()
	d := &Driver{o: Options{Session: 6 * time.Second}}
	m := d.newMember(&topicState{name: "orders"}, driver.DefaultGroup, driver.Strict)
	defer m.cancel()
	we, start := standing{"we", 7}, time.Now()
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	until := func(want float64) {
		t.Helper()
		if !m.vouched(at(want-0.1)) || m.vouched(at(want)) {
			t.Errorf("vouched until %v, want %v s", m.sure.Sub(start), want)
		}
	}
	if m.answered(at(0), true, we); !m.sure.Before(at(0)) {
		t.Errorf("a generation whose assignment is not known vouches until %v", m.sure.Sub(start))
	}
	m.assignedAs = we
	m.answered(at(1), true, we)
	until(7)
	m.answered(at(10), false, we) // a rebalance began after 1 s
	until(16)
	m.answered(at(18), false, we)
	until(21) // by then it may be over without us
	m.answered(at(20), true, standing{"we", 8})
	until(21) // we have joined, and do not know our part yet
	m.answered(at(20), true, standing{"another", 7})
	until(21)
	m.assignedAs = standing{"we", 8}
	m.answered(at(20.5), true, m.assignedAs)
	until(26.5)
	m.answered(at(20.2), false, m.assignedAs) // late
	until(26.5)
}
