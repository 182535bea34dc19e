package frame

import (
	"io"
	"strconv"
	"testing"
)

// BenchmarkWrite writes an answer with one message of 1 KiB and one with a thousand. It pays for the pool of buffers.
func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			v := many()
			v.Deliveries = v.Deliveries[:n]
			size := Size(v)
			b.ReportAllocs()
			for b.Loop() {
				if err := Write(io.Discard, v, size); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
