package main

import (
	"testing"
	"time"
)

// TestTimes: of a hundred requests the 99th percentile is the second slowest.
func TestTimes(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration(100-i))
	}
	if got := timesOf(all); got != (times{median: 51, p99: 99}) {
		t.Errorf("%+v", got)
	}
	if got := timesOf([]time.Duration{7}); got != (times{7, 7}) {
		t.Errorf("%+v", got)
	}
}
