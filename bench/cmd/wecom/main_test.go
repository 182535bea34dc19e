package main

import "testing"

// TestMeasure: everything goes both ways. What it measures in memory means nothing.
func TestMeasure(t *testing.T) {
	t.Parallel()
	f, err := measure(t.Context(), "memory://", 2000)
	if err != nil || f.in <= 0 || f.out <= 0 {
		t.Errorf("%+v, %v", f, err)
	}
}
