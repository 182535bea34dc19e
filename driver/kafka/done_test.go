package kafka

import (
	"testing"

	"pgregory.net/rapid"
)

// TestDoneSet compares the set, and what survives its text, with a plain map.
func TestDoneSet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := rapid.Int64Range(0, 1000).Draw(t, "start")
		s, model := newDoneSet(start), map[int64]bool{}
		for _, n := range rapid.SliceOfN(rapid.Int64Range(0, 600), 0, 400).Draw(t, "offsets") {
			s.set(start + n)
			model[start+n] = true
		}
		base := start
		for model[base] {
			base++
		}
		again := newDoneSet(s.base)
		again.readMetadata(s.encode(maxMetadata))
		if s.base != base || again.base != base {
			t.Fatalf("base is %d, %d after reading, want %d", s.base, again.base, base)
		}
		for off := start; off < start+700; off++ {
			if want := off < base || model[off]; s.has(off) != want || again.has(off) != want {
				t.Fatalf("offset %d: done %v, %v after reading, want %v", off, s.has(off), again.has(off), want)
			}
		}
	})
}

// FuzzMetadata reads what others may have committed.
func FuzzMetadata(f *testing.F) {
	f.Add("f1AAEB")
	f.Add("R12;HAQ;f1AQ")
	f.Fuzz(func(t *testing.T, text string) {
		s := newDoneSet(10)
		s.readMetadata(text)
		if s.base < 10 {
			t.Fatalf("base moved back to %d", s.base)
		}
	})
}

// TestPartitionOf pins the hash of Java's producer: its own test vectors.
func TestPartitionOf(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int32{"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971} {
		if got := int32(murmur2([]byte(key))); got != want {
			t.Errorf("murmur2(%q) = %d, want %d", key, got, want)
		}
	}
}
