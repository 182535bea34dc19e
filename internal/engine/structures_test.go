package engine

import (
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
	for at, v := range q.after(from) {
		if got = append(got, at); *v != at {
			break
		}
	}
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

func TestAListThatIsAQueueGivesMemoryBack(t *testing.T) {
	t.Parallel()
	first, second := new(int), new(int)
	vs := []*int{first, second}
	rest := popFirst(vs)
	if vs[0] != nil || len(rest) != 1 || rest[0] != second {
		t.Errorf("%v remains of %v", rest, vs)
	}
	if popFirst(rest) != nil || vs[1] != nil {
		t.Error("an empty list keeps memory")
	}
}
