package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// fill publishes n messages of one priority.
func fill(t *testing.T, e *Engine, p driver.Priority, n int) {
	t.Helper()
	for i := range n {
		publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(p, i), Priority: p})
	}
}

// shares counts the lanes of the next n claims, and acks them.
func shares(t *testing.T, s *subscription, n int) (got [4]int) {
	t.Helper()
	for range n {
		ds := take(t, s, 1)
		if len(ds) == 0 {
			t.Fatal("nothing to claim")
		}
		got[ds[0].Priority.Lane()]++
		settle(t, s, driver.Ack, 0, ds...)
	}
	return got
}

func TestWeightsHoldWithin5Percent(t *testing.T) {
	t.Parallel()
	for _, weights := range [][4]int{driver.DefaultWeights, {1, 1, 1, 1}, {10, 1, 1, 3}} {
		e := open(t)
		s := subscribe(t, e, driver.SubscribeOptions{Weights: weights})
		total := 0
		for lane, w := range weights {
			total += w
			fill(t, e, driver.Priority(lane-1), 10_000)
		}
		const claims = 10_000
		for lane, n := range shares(t, s, claims) {
			want := float64(claims*weights[lane]) / float64(total)
			if f := float64(n); f < want*0.95-1 || f > want*1.05+1 {
				t.Errorf("weights %v: lane %d got %d of %d claims, want %.0f", weights, lane, n, claims, want)
			}
		}
	}
}

func TestEmptyLaneGetsNoCredit(t *testing.T) {
	t.Parallel()
	e := open(t)
	s := subscribe(t, e, driver.SubscribeOptions{Weights: [4]int{1, 1, 1, 1}})
	fill(t, e, driver.Normal, 2000)
	shares(t, s, 1000) // the high lane was empty all this time
	fill(t, e, driver.High, 1000)
	if got := shares(t, s, 100); got[driver.High.Lane()] > 51 {
		t.Errorf("a lane that was empty gets %d of 100 claims, want about 50", got[driver.High.Lane()])
	}
}

// TestReturnedItemsKeepTheirPlaces releases in a bad order and expects publish order.
func TestReturnedItemsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	e := open(t)
	s := subscribe(t, e, driver.SubscribeOptions{})
	fill(t, e, driver.Normal, 50)
	ds := take(t, s, 20)
	for _, i := range []int{7, 3, 19, 0, 11} {
		settle(t, s, driver.Release, 0, ds[i])
	}
	var got []string
	for _, d := range take(t, s, 6) {
		got = append(got, strings.TrimPrefix(d.ID, "normal "))
	}
	if want := "[0 3 7 11 19 20]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
