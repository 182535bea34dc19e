package record

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// BenchmarkScratch writes 100 messages of 1 KiB as records. It pays for the pool of chunks.
func BenchmarkScratch(b *testing.B) {
	m := &driver.Message{ID: "0190a1b2-0000-7000-8000-000000000001", Topic: "orders", Key: "k", Body: make([]byte, 1024)}
	for _, lent := range []bool{false, true} {
		b.Run(fmt.Sprintf("lent=%v", lent), func(b *testing.B) {
			rs := make([]kgo.Record, 100)
			b.ReportAllocs()
			for b.Loop() {
				s := &Scratch{Lent: lent}
				for i := range rs {
					rs[i].Headers = rs[i].Headers[:0]
					WriteRecord(&rs[i], s, nil, "orders", 0, m)
				}
				s.Release()
			}
		})
	}
}

// TestScratch: what is taken from a scratch is apart, whether it is lent or not, and also what is too large for a
// chunk.
func TestScratch(t *testing.T) {
	t.Parallel()
	for _, lent := range []bool{false, true} {
		s := &Scratch{Lent: lent}
		var all [][]byte
		for i, n := range []int{1, chunkBytes / 8, chunkBytes, 7, chunkBytes/8 - 1, chunkBytes / 8, 0, 3} {
			b := s.take(n)
			if len(b) != n || cap(b) != n {
				t.Fatalf("lent %v: %d bytes of at most %d instead of %d", lent, len(b), cap(b), n)
			}
			for k := range b {
				b[k] = byte(i)
			}
			all = append(all, b)
		}
		for i, b := range all {
			for _, x := range b {
				if x != byte(i) {
					t.Fatalf("lent %v: what was taken as number %d is written over", lent, i)
				}
			}
		}
		s.Release()
		if len(s.chunks) != 0 || len(s.free) != 0 {
			t.Errorf("lent %v: something is kept after the release", lent)
		}
	}
}
