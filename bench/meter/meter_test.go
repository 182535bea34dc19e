package meter

import (
	"testing"
	"time"
)

func TestSharesOfTheMachine(t *testing.T) {
	t.Parallel()
	before := parseStat("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n")
	after := parseStat("cpu  150 10 120 900 0 0 0 20 0 0\n")
	if before.busy != 2*time.Second || before.idle != 8*time.Second {
		t.Fatalf("parsed %+v", before)
	}
	// 200 ticks in all: 80 busy of which 40 ours, 100 idle, 20 stolen.
	steal, others := after.shares(before, 400*time.Millisecond)
	if steal != 0.1 || others != 0.2 {
		t.Errorf("steal %v others %v, want 0.1 and 0.2", steal, others)
	}
	if _, others := after.shares(before, 790*time.Millisecond); others != 0 {
		t.Errorf("one tick of others counts as %v, want 0: it is within the grain", others)
	}
	if steal, others := before.shares(before, 0); steal != 0 || others != 0 {
		t.Error("no time passed, yet somebody used some")
	}
}

func TestNoisy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		r    Reading
		want bool
	}{{Reading{}, false}, {Reading{Steal: 0.05}, true}, {Reading{Others: 0.2}, true},
		{Reading{Steal: 0.01, Others: 0.05}, false}} {
		if got := tt.r.Noisy(); got != tt.want {
			t.Errorf("%+v noisy: %v, want %v", tt.r, got, tt.want)
		}
	}
}

var sink []byte

func TestSpanCountsAllocations(t *testing.T) {
	s := Start(func() time.Duration { return 0 })
	for range 100 {
		sink = make([]byte, 4096)
	}
	r := s.Stop()
	if r.Allocs < 100 || r.Elapsed <= 0 {
		t.Errorf("100 allocations and some time read as %+v", r)
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	if m := ThisMachine(); m.Cores < 1 || m.Go == "" {
		t.Errorf("machine %+v", m)
	}
}
