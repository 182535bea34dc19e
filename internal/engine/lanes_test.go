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
