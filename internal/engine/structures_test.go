package engine

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSequence compares a sequence with a map, over random puts, removals and walks.
func TestSequence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q sequence[uint64]
		model, last := map[uint64]uint64{}, uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if n := len(model); n > 0 && rapid.Bool().Draw(t, "remove") {
				at := rapid.SampledFrom(slices.Sorted(maps.Keys(model))).Draw(t, "at")
				q.remove(at)
				q.remove(at) // harmless
				delete(model, at)
			} else {
				last += rapid.Uint64Range(1, 2*segmentSize).Draw(t, "gap")
				v := last
				q.put(last, &v)
				model[last] = last
			}
			compareSequence(t, &q, model, rapid.Uint64Range(0, last+1).Draw(t, "from"))
		}
	})
}

func compareSequence(t *rapid.T, q *sequence[uint64], model map[uint64]uint64, from uint64) {
	var got, want []uint64
	q.after(from, func(at uint64, v *uint64) bool { got = append(got, at); return *v == at })
	for _, at := range slices.Sorted(maps.Keys(model)) {
		if q.get(at) == nil {
			t.Fatalf("%d is missing", at)
		}
		if at > from {
			want = append(want, at)
		}
	}
	if !slices.Equal(got, want) || q.count != len(model) {
		t.Fatalf("after %d: got %v, want %v; count %d", from, got, want, q.count)
	}
	for i, s := range q.segments {
		if s.live == 0 && i < len(q.segments)-1 {
			t.Fatal("an empty segment was not freed")
		}
	}
}

func TestIndexAndQueueGiveMemoryBack(t *testing.T) {
	t.Parallel()
	const n = 100_000
	var x index[string, int]
	var q queue[int]
	for i := range n {
		x.put(fmt.Sprint(i), i)
		q.push(i)
	}
	for i := range n - 10 {
		x.remove(fmt.Sprint(i))
		q.pop()
	}
	if x.len() != 10 || x.peak > 4096 {
		t.Errorf("index: %d, sized for %d", x.len(), x.peak)
	}
	for i := n - 10; i < n; i++ {
		if v, ok := x.get(fmt.Sprint(i)); !ok || v != i {
			t.Errorf("index lost %d", i)
		}
		if got := *q.head(); got != i {
			t.Errorf("queue: got %d, want %d", got, i)
		}
		q.pop()
	}
	if !q.empty() || q.vs != nil {
		t.Error("the queue keeps memory")
	}
}
