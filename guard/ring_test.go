package guard

import (
	"strconv"
	"testing"
	"time"
)

// BenchmarkWindow counts messages of a key of which one or a thousand are in the window, here and in a slice that is
// cut in front and appended to. It pays for the ring.
func BenchmarkWindow(b *testing.B) {
	for _, held := range []time.Duration{1, 1000} {
		var r ring
		benchWindow(b, "this", held, func(t time.Duration) {
			r.forget(t - held)
			r.add(t)
		})
		var times []time.Duration
		benchWindow(b, "slice", held, func(t time.Duration) {
			for len(times) > 0 && times[0] <= t-held {
				times = times[1:]
			}
			times = append(times, t)
		})
	}
}

func benchWindow(b *testing.B, name string, held time.Duration, count func(t time.Duration)) {
	b.Run(strconv.Itoa(int(held))+"/"+name, func(b *testing.B) {
		t := time.Duration(0)
		for ; t < 10*held; t++ {
			count(t)
		}
		b.ReportAllocs()
		for ; b.Loop(); t++ {
			count(t)
		}
	})
}
