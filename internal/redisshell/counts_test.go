package redisshell_test

import (
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Counts of all parts are added, those of a group wherever it is met first, and a member counts once.
func TestAddCounts(t *testing.T) {
	group := func(name string, received, acked string, waiting int64) driver.GroupStats {
		f := map[string]string{"received": received, "acked": acked, "dropped": "-1"}
		g := redisshell.GroupCounts(name, f, 1, waiting, 0)
		g.Consumers, g.Oldest = 2, time.Duration(waiting)*time.Second
		return g
	}
	var total driver.TopicStats
	for _, groups := range [][]driver.GroupStats{
		{group("b", "5", "2", 1)},
		{group("a", "4", "0", 0), group("b", "9", "3", 2)},
	} {
		one := redisshell.TopicCounts("jobs", map[string]string{"published": "7", "bytes": "x", "paused": "1"})
		one.Delayed, one.Groups = 1, groups
		redisshell.AddCounts(&total, one)
	}
	if total.Published != 14 || total.Delayed != 2 || total.Bytes != 0 || !total.Paused || len(total.Groups) != 2 {
		t.Errorf("%+v", total)
	}
	a, b := total.Groups[0], total.Groups[1]
	if a.Group != "a" || a.Ready != 3 || b.Group != "b" || b.Received != 14 || b.Acked != 5 || b.Dropped != 0 ||
		b.Ready != 4 || b.Waiting != 3 || b.Consumers != 2 || b.Oldest != 2*time.Second {
		t.Errorf("%+v", total.Groups)
	}
}
