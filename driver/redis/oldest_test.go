package redis_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// Oldest also counts what is ready but waits behind a message of its key that is held, or waits for a retry.
func TestOldestBehindItsKey(t *testing.T) {
	t.Parallel()
	d := open(t, redistest.Shared(t).URL(), namespace())
	closing(t, d)
	s := subscribe(t, d, "jobs")
	ms := []*driver.Message{{ID: "1", Topic: "jobs", Key: "k"}, {ID: "2", Topic: "jobs", Key: "k"}}
	if _, err := d.Publish(t.Context(), ms, driver.PublishOptions{}); err != nil {
		t.Fatal(err)
	}
	published := time.Now()
	const age = 50 * time.Millisecond
	check := func(when string, want int64) {
		t.Helper()
		st, err := d.Stats(t.Context(), "jobs")
		if err != nil {
			t.Fatal(err)
		}
		g := st.Groups[0]
		if g.Ready != want || want > 0 && (g.Oldest < age || g.Oldest > time.Since(published)+age) ||
			want == 0 && g.Oldest != 0 {
			t.Errorf("%s: %d ready, the oldest for %v", when, g.Ready, g.Oldest)
		}
	}
	ds := take(t, s, 1)
	time.Sleep(age) // that it grows older is what is tested
	check("its head is held", 1)
	if err := s.Settle(t.Context(),
		[]driver.Settlement{{Delivery: ds[0], Outcome: driver.Retry, After: time.Hour,
			Failure: &driver.Failure{Error: "x"}}})[0]; err != nil {
		t.Fatal(err)
	}
	check("its head waits", 1)
	if err := d.Move(t.Context(), []driver.Move{
		{Target: driver.Target{Topic: "jobs", Group: driver.DefaultGroup, ID: "1"}}})[0]; err != nil {
		t.Fatal(err)
	}
	drain(t, s, 2)
	check("all is done", 0)
}
