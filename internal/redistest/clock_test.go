package redistest

import (
	"strconv"
	"testing"
	"time"
)

// A server whose clock is set tells another time at once, and its clients' clocks stay as they are.
func TestClock(t *testing.T) {
	t.Parallel()
	c, err := NewClock(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := Single(t, Options{Clock: c})
	for _, offset := range []time.Duration{0, time.Hour, -time.Hour, 0} {
		if err := c.Set(offset); err != nil {
			t.Fatal(err)
		}
		before := time.Now().Add(offset)
		reply, err := s.Command("TIME")
		if err != nil || len(reply.List) != 2 {
			t.Fatalf("TIME: %v, %v", reply, err)
		}
		seconds, err := strconv.ParseInt(reply.List[0].Text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if seconds < before.Unix() || seconds > time.Now().Add(offset).Unix() {
			t.Errorf("set to %v it tells %v, %v from then", offset, time.Unix(seconds, 0), time.Unix(seconds, 0).Sub(before))
		}
	}
}
