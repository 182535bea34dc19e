package gateway

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/driver"
)

// Holdings are a map, whatever is added and removed in which order, and keep nothing of what was removed.
func TestHoldings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x, want, last := newHoldings(), map[uint64]*driver.Delivery{}, uint64(0)
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "add") > 0 {
				last++
				want[last] = &driver.Delivery{LeaseUntil: time.Unix(int64(last), 0)}
				x.add(last, want[last])
				continue
			}
			handle := rapid.Uint64Range(0, last+1).Draw(t, "handle")
			delete(want, handle)
			x.remove(handle)
		}
		compareHoldings(t, &x, want, last)
	})
}

func compareHoldings(t *rapid.T, x *holdings, want map[uint64]*driver.Delivery, last uint64) {
	blocks, before := map[uint64]bool{}, 0
	for handle := range last + 2 {
		h, d := x.find(handle), want[handle]
		if (h == nil) != (d == nil) || h != nil && (h.delivery != d || !h.until.Equal(d.LeaseUntil)) {
			t.Fatalf("handle %d stands for %v, want %v", handle, h, d)
		}
		if d != nil {
			blocks[handle/blockSize] = true
			if handle < last/2 {
				before++
			}
		}
	}
	if x.n != len(want) || len(x.blocks) != len(blocks) {
		t.Errorf("%d in %d blocks, want %d in %d", x.n, len(x.blocks), len(want), len(blocks))
	}
	lost := x.lostBefore(time.Unix(int64(last/2), 0))
	if len(lost) != before || slices.ContainsFunc(lost, func(h uint64) bool { return want[h] == nil || h >= last/2 }) {
		t.Errorf("lost are %v, want the %d before %d", lost, before, last/2)
	}
}
