package scheduler

import "testing"

// shares takes n items one by one, each of which is replaced, and counts their lanes.
func shares(q *Queue[thing], h *Holder[thing], n int) (got [Lanes]int) {
	for range n {
		x := q.Next(h, NoLane)
		q.Take(h, &x.Node, 1, nil, nil)
		q.End(h, &x.Node)
		x.Place += 1_000_000
		q.Ready(&x.Node, "", x.lane)
		got[x.lane]++
	}
	return got
}

// filled returns a queue with some items in lanes.
func filled(lanes ...int) *Queue[thing] {
	q := New[thing](func() {})
	for i := range 10 * len(lanes) {
		x := &thing{lane: lanes[i%len(lanes)]}
		x.Place = uint64(i)
		q.Ready(&x.Node, "", x.lane)
	}
	return &q
}

func TestWeightsHoldWithin5Percent(t *testing.T) {
	t.Parallel()
	for _, weights := range [][Lanes]int{{1, 2, 4, 8}, {1, 1, 1, 1}, {10, 1, 1, 3}} {
		h, total := NewHolder[thing](weights, false), 0
		for _, w := range weights {
			total += w
		}
		const claims = 10_000
		for lane, n := range shares(filled(0, 1, 2, 3), &h, claims) {
			want := float64(claims*weights[lane]) / float64(total)
			if f := float64(n); f < want*0.95-1 || f > want*1.05+1 {
				t.Errorf("weights %v: lane %d got %d of %d claims, want %.0f", weights, lane, n, claims, want)
			}
		}
	}
}

func TestEmptyLaneGetsNoCredit(t *testing.T) {
	t.Parallel()
	q, h := filled(1), NewHolder[thing]([Lanes]int{1, 1, 1, 1}, false)
	shares(q, &h, 1000) // lane 3 was empty all this time
	x := &thing{lane: 3}
	q.Ready(&x.Node, "", 3)
	if got := shares(q, &h, 100); got[3] > 51 {
		t.Errorf("a lane that was empty gets %d of 100 claims, want about 50", got[3])
	}
}

// TestComingLane: a lane of which more is coming has its turn, and is not passed by those below it.
func TestComingLane(t *testing.T) {
	t.Parallel()
	q, h := filled(0), NewHolder[thing]([Lanes]int{1, 1, 1, 1}, false)
	if q.Next(&h, NoLane) == nil {
		t.Fatal("nothing to claim")
	}
	if x := q.Next(&h, 1); x != nil {
		t.Errorf("item of lane %d, want none before lane 1 has come", x.lane)
	}
	x := &thing{lane: 1}
	q.Ready(&x.Node, "", 1)
	if got := q.Next(&h, 1); got != x {
		t.Errorf("next is %+v", got)
	}
}

func TestItemEmbedsItsNodeFirst(t *testing.T) {
	t.Parallel()
	type wrong struct {
		_ int
		Node[thing]
	}
	defer func() {
		if recover() == nil {
			t.Error("an item whose node is not its first field is accepted")
		}
	}()
	New[wrong](func() {})
}
