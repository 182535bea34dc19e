package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestRawStopsNobody stores bytes that are no message between messages of a key: whoever comes to them first moves them
// to the parse errors, for every group.
func TestRawStopsNobody(t *testing.T) {
	t.Parallel()
	e := open(t)
	a, b := subscribe(t, e, driver.SubscribeOptions{MaxRun: 9}),
		subscribe(t, e, driver.SubscribeOptions{Group: "b", MaxRun: 9})
	publish(t, e, &driver.Message{Topic: "t", ID: "1", Key: "k"})
	for _, raw := range []string{"broken", ""} {
		if err := e.StoreRaw(context.Background(), "t", []byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, e, &driver.Message{Topic: "t", ID: "3", Key: "k"})
	for _, s := range []*subscription{a, b} {
		var got []string
		for ds := take(t, s, 9); len(ds) > 0; ds = take(t, s, 9) {
			for _, d := range ds {
				got = append(got, d.ID+d.Key)
				settle(t, s, driver.Ack, 0, d)
			}
			audit(t, e)
		}
		if !slices.Equal(got, []string{"1k", "3k"}) {
			t.Errorf("group %s got %v", s.g.name, got)
		}
	}
	if n := topicOf(e, "t").stats.Invalid; n != 2 {
		t.Errorf("%d invalid, want 2", n)
	}
}

// TestPoisonedKeyCostsOthersNothing claims among many keys while one of them is blocked.
func TestPoisonedKeyCostsOthersNothing(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	e := open(t)
	s := subscribe(t, e, driver.SubscribeOptions{MaxInflight: keys})
	for round := range 2 {
		for k := range keys {
			publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(round, k), Key: fmt.Sprint(k)})
		}
	}
	settle(t, s, driver.Retry, time.Hour, take(t, s, 1)...)
	n := 0
	for ds := take(t, s, 100); len(ds) > 0; ds = take(t, s, 100) {
		n += len(ds)
		settle(t, s, driver.Ack, 0, ds...)
	}
	if n != 2*keys-2 {
		t.Errorf("%d came, want all but the two of the blocked key, %d", n, 2*keys-2)
	}
	if c := s.g.queue.Keys(); c != 1 {
		t.Errorf("%d chains remain, want the blocked one", c)
	}
}
