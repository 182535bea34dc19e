package growth

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestShapes: every shape lets everything through, and says what it cost. What it measures so small means nothing.
func TestShapes(t *testing.T) {
	t.Parallel()
	for _, s := range Shapes() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			rows, err := Measure(t.Context(), "memory", s, Effort{Rounds: 1, Each: time.Minute, Scale: 0.001})
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
	if _, err := Measure(t.Context(), "paper", Shapes()[0], Effort{Rounds: 1, Each: time.Minute, Scale: 1}); err == nil {
		t.Error("a broker that does not exist was measured")
	}
}

// TestUnreached: a size that takes too long, or that the broker cannot have, ends neither the measurement nor the other
// sizes; a failure does.
func TestUnreached(t *testing.T) {
	t.Parallel()
	full := driver.NewError(driver.ErrFull, "it has the most it can have", "have less", nil)
	broken := errors.New("it is broken")
	for _, tc := range []struct {
		name string
		at   func() error // at the second size; nil: it goes on for ever
		want string
		err  error
	}{
		{"too long", nil, "takes longer than 1s", nil},
		{"too many", func() error { return full }, "the most it can have", nil},
		{"broken", func() error { return broken }, "", broken},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			asked := map[int]int{}
			s := Shape{Name: "made up", Sizes: []int{1, 2, 3}, run: func(ctx context.Context, _ *grown, size int) (Cost, error) {
				asked[size]++
				switch {
				case size == 1:
					return Cost{Units: 1, CPU: time.Microsecond}, nil
				case tc.at != nil:
					return Cost{}, tc.at()
				}
				<-ctx.Done()
				return Cost{}, context.Cause(ctx)
			}}
			rows, err := Measure(t.Context(), "memory", s, Effort{Rounds: 2, Each: time.Second, Scale: 1})
			if tc.err != nil {
				if !errors.Is(err, tc.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if asked[1] != 2 || asked[2] != 1 || asked[3] != 0 {
				t.Errorf("sizes were asked %v times", asked)
			}
			for i, r := range rows {
				if reached := i == 0; reached != (r.Unreached == "") || reached != (len(r.Rounds) == 2) ||
					!reached && !strings.Contains(r.Unreached, tc.want) {
					t.Errorf("size %d: %+v", r.Size, r)
				}
			}
		})
	}
}
