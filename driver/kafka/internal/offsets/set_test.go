package offsets

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDoneSet compares the set, and what survives its text, with a plain map.
func TestDoneSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 1000).Draw(t, "start")
		s, model := NewSet(start), map[int64]bool{}
		for _, n := range rapid.SliceOfN(rapid.Int64Range(0, 600), 0, 400).Draw(t, "offsets") {
			s.Set(start + n)
			model[start+n] = true
		}
		base := start
		for model[base] {
			base++
		}
		again := NewSet(s.Base)
		again.ReadMetadata(s.Encode(MaxMetadata))
		if s.Base != base || again.Base != base {
			t.Fatalf("base is %d, %d after reading, want %d", s.Base, again.Base, base)
		}
		for off := start; off < start+700; off++ {
			if want := off < base || model[off]; s.Has(off) != want || again.Has(off) != want {
				t.Fatalf("offset %d: done %v, %v after reading, want %v", off, s.Has(off), again.Has(off), want)
			}
		}
	})
}

// windowItems is as many as a member fetches ahead.
const windowItems = 20_000

// TestDoneSetOfAWindow: of a whole window that is settled in any order all of it is told, and room is left for the
// lists.
func TestDoneSetOfAWindow(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(1, 1))
	for _, share := range []int{2, 3, 4, 10, 1000} {
		s := NewSet(77)
		for off := int64(78); off < 77+windowItems; off++ {
			if dice.IntN(share) == 0 {
				s.Set(off)
			}
		}
		again := NewSet(77)
		again.ReadMetadata(s.Encode(MaxMetadata - ListRoom - 100))
		for off := int64(77); off < 78+windowItems; off++ {
			if s.Has(off) != again.Has(off) {
				t.Fatalf("one of %d is done: offset %d %v, %v after reading", share, off, s.Has(off), again.Has(off))
			}
		}
	}
}

// TestOffsets: lists of offsets come back as they were, but for what has no room.
func TestOffsets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var offsets []int64
		for at := rapid.Int64Range(0, 1<<40).Draw(t, "start"); len(offsets) < 500; {
			for range rapid.IntRange(1, 40).Draw(t, "run") {
				offsets = append(offsets, at)
				at++
			}
			at += rapid.Int64Range(1, 500).Draw(t, "gap")
		}
		room := rapid.IntRange(0, 1000).Draw(t, "room")
		text, left := WriteOffsets(LeasedPart, slices.Clone(offsets), room)
		var told []int64
		if text != "" {
			told = readOffsets(text[1 : len(text)-1])
		}
		if len(text) > room || !slices.Equal(append(told, left...), offsets) {
			t.Fatalf("%v is %q with %v left over, in %d characters", offsets, text, left, room)
		}
	})
}

// FuzzMetadata reads what others may have committed.
func FuzzMetadata(f *testing.F) {
	f.Add("f1AAEB")
	f.Add("R12;HAQ;f1AQ")
	f.Add("C;GAwU;f2AQID")
	f.Fuzz(func(t *testing.T, text string) {
		s := NewSet(10)
		s.ReadMetadata(text)
		if s.Base < 10 {
			t.Fatalf("base moved back to %d", s.Base)
		}
	})
}
