package worker_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ferrymq/ferry/worker"
)

// TestHistogramsAddUp: what several processes counted is told as if one had counted it.
func TestHistogramsAddUp(t *testing.T) {
	at := func(d time.Duration) int {
		for i := 0; ; i++ {
			if worker.HistogramBound(i) >= d {
				return i
			}
		}
	}
	quick, slow := at(10*time.Millisecond), at(time.Second)
	one := worker.Histogram{Counts: append(make([]uint64, quick), 98), Sum: 980 * time.Millisecond,
		Max: 11 * time.Millisecond}
	two := worker.Histogram{Counts: append(make([]uint64, slow), 2), Sum: 2 * time.Second, Max: time.Second}
	sum := one
	sum.Add(two)
	q := sum.Quantiles()
	if sum.Count() != 100 || q.Mean != 29800*time.Microsecond || q.Max != time.Second {
		t.Errorf("%d counted, %+v", sum.Count(), q)
	}
	if q.P50 < 8*time.Millisecond || q.P50 > 12*time.Millisecond || q.P99 < 850*time.Millisecond {
		t.Errorf("%+v, want a median of 10 ms and a p99 of 1 s", q)
	}
	if one.Count() != 98 {
		t.Error("Add changed a histogram that was added to another")
	}
	text, err := sum.MarshalText()
	if err != nil || len(text) > 60 {
		t.Errorf("%s, %v: want it short", text, err)
	}
	var back worker.Histogram
	if err := back.UnmarshalText(text); err != nil || !cmp.Equal(back, sum) {
		t.Errorf("%s reads as %+v, %v", text, back, err)
	}
}

func TestHistogramRefusesOtherTexts(t *testing.T) {
	for _, text := range []string{"1", "a b", "1 2 3", "1 2 x:1", "1 2 153:1", "1 2 -1:1", "1 2 999999999:1"} {
		var h worker.Histogram
		if err := h.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q reads as %+v", text, h)
		}
	}
}

// TestHistogramBoundsAreThoseOfSchema2: bucket 80 ends at a second, and each fourth doubles.
func TestHistogramBoundsAreThoseOfSchema2(t *testing.T) {
	for bucket, want := range map[int]time.Duration{-worker.HistogramFirst: time.Second,
		4 - worker.HistogramFirst: 2 * time.Second, -20 - worker.HistogramFirst: time.Second / 32} {
		if got := worker.HistogramBound(bucket); got != want {
			t.Errorf("bucket %d ends at %v, want %v", bucket, got, want)
		}
	}
}
