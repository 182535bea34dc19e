package load

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkCost is what the bench itself adds to each message: making its body, and checking it off.
func BenchmarkCost(b *testing.B) {
	for _, size := range []int{128, 1024} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			bodies := NewBodies(size, 1)
			l := NewLedger(bodies, 1, 1<<20)
			buf := make([]byte, size)
			i := 0
			for b.Loop() {
				bodies.Fill(buf, l.Seq(0, i&(1<<20-1)), time.Time{})
				l.Note(buf)
				i++
			}
		})
	}
}
