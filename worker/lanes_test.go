package worker

import (
	"fmt"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// fetched returns what one fetch brings of a key.
func fetched(fetch uint64, key string, n int) []*run {
	var runs []*run
	for i := range n {
		m := &driver.Message{ID: fmt.Sprintf("%s%d", key, i), Key: key}
		runs = append(runs, &run{d: &driver.Delivery{Message: m}, fetch: fetch})
	}
	return runs
}

func TestLaterFetchOutdatesAnEarlierOne(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		state runState
		lost  bool
	}{{"before it started", waiting, true}, {"while it runs", running, false}} {
		t.Run(tc.name, func(t *testing.T) {
			var ls lanes
			old, fresh := fetched(1, "k", 3), fetched(2, "k", 2)
			for _, r := range old {
				ls.push(r)
			}
			old[0].state = tc.state
			for _, r := range fresh {
				ls.push(r)
			}
			if old[0].lost != tc.lost || old[1].state != gone || old[2].state != gone {
				t.Errorf("lost: %v, states %v and %v", old[0].lost, old[1].state, old[2].state)
			}
			l := ls.keys["k"]
			if l.queue.n != 2 || ls.queued != 2 || l.queue.head != fresh[0] {
				t.Errorf("%d in the queue, %d in all", l.queue.n, ls.queued)
			}
			ls.advance(l, 0)
			ls.advance(l, 0)
			if l.first != fresh[1] {
				t.Error("the fresh ones do not follow")
			}
			ls.advance(l, 0)
			if len(ls.keys) != 0 || ls.queued != 0 {
				t.Errorf("%d lanes left", len(ls.keys))
			}
		})
	}
}

func TestForgetKeepsOtherFetches(t *testing.T) {
	t.Parallel()
	var ls lanes
	for _, r := range append(fetched(1, "k", 1), fetched(2, "k", 2)...) {
		if r.fetch == 1 {
			ls.push(r)
			r.state = running
			continue
		}
		ls.push(r)
	}
	l := ls.keys["k"]
	ls.forget(l, 1)
	if l.queue.n != 2 {
		t.Errorf("%d left of another fetch", l.queue.n)
	}
	ls.forget(l, 2)
	if l.queue.n != 0 || ls.queued != 0 {
		t.Errorf("%d left", l.queue.n)
	}
}
