package redisshell_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// Counts of all parts are added, those of a group wherever it is met first, and a member counts once.
func TestAddCounts(t *testing.T) {
	group := func(name, received, acked string, waiting int) redisconn.Reply {
		f := []any{"received", received, "acked", acked, "dropped", "-1"}
		n := strconv.Itoa(waiting)
		return redisconn.Reply{name, "1", f, "1", n, "0", []any{"m1", "m2"}, n + "000"}
	}
	list := func(groups ...redisconn.Reply) (all []any) {
		for _, g := range groups {
			all = append(all, []any(g))
		}
		return all
	}
	var total driver.TopicStats
	for _, groups := range [][]any{list(group("b", "5", "2", 1)), list(group("a", "4", "0", 0), group("b", "9", "3", 2))} {
		fields := []any{"published", "7", "bytes", "x", "paused", "1"}
		redisshell.AddCounts(&total, redisconn.Reply{"ok", fields, []any{"1", "0", "0"}, groups})
	}
	if total.Published != 14 || total.Delayed != 2 || total.Bytes != 0 || !total.Paused || len(total.Groups) != 2 {
		t.Errorf("%+v", total)
	}
	a, b := total.Groups[0], total.Groups[1]
	if a.Group != "a" || a.Ready != 3 || b.Group != "b" || b.Received != 14 || b.Acked != 5 || b.Dropped != 0 ||
		b.Ready != 4 || b.Waiting != 3 || b.Consumers != 2 || b.Oldest != 2*time.Second ||
		a.Order != driver.Relaxed {
		t.Errorf("%+v", total.Groups)
	}
}
