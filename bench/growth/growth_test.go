package growth

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestShapes: every shape lets everything through, and says what it cost. What it measures so small means nothing.
func TestShapes(t *testing.T) {
	t.Parallel()
	for _, s := range Shapes() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			rows, err := Measure(t.Context(), "memory", s, 1, 0.001)
			if err != nil {
				t.Fatal(err)
			}
			if len(rows) != len(s.Sizes) {
				t.Fatalf("%d rows of %d sizes", len(rows), len(s.Sizes))
			}
			for _, r := range rows {
				if c := r.Median(); c.Units < 1 || c.CPU <= 0 || c.PerUnit() <= 0 {
					t.Errorf("size %d cost %+v", r.Size, c)
				}
			}
		})
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	r := Row{Rounds: []Cost{{Units: 1, CPU: 9 * time.Microsecond}, {Units: 1, CPU: 2 * time.Microsecond},
		{Units: 2, CPU: 6 * time.Microsecond}}}
	if got := r.Median().PerUnit(); got != 3 {
		t.Errorf("the middle of 9, 2 and 3 µs is %v", got)
	}
}

func TestUnknownBroker(t *testing.T) {
	t.Parallel()
	if _, err := Measure(t.Context(), "paper", Shapes()[0], 1, 1); err == nil {
		t.Error("a broker that does not exist was measured")
	}
}
