package consumer

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestClaimedByTheBrokersClock: claims of several processes are told apart by their times, so that these are the
// brokers', however wrong our clock is.
func TestClaimedByTheBrokersClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, it := ownedItem(t)
		begun := time.Now()
		m.d.cluster.Clock.Take(begun.Add(time.Hour), begun, begun)
		m.sure, it.p.begun = begun.Add(time.Minute), true
		time.Sleep(time.Second)
		s := &subscription{m: m, o: driver.SubscribeOptions{Lease: time.Minute, MaxRun: 1, MaxInflight: 1,
			Weights: driver.DefaultWeights}}
		ds, err := s.Receive(t.Context(), 1)
		if err != nil || len(ds) != 1 || !ds[0].ClaimedAt.Equal(begun.Add(time.Hour+time.Second)) {
			t.Errorf("Receive: %+v, %v; want one claimed at %v", ds, err, begun.Add(time.Hour+time.Second))
		}
	})
}
