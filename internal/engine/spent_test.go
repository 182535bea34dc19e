package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
	"pgregory.net/rapid"
)

// spentNow empties the pool and returns what was in it. Under the race detector a pool loses some of what it gets.
func spentNow(e *Engine) map[*entry]bool {
	all := map[*entry]bool{}
	for it, _ := e.spent.pool.Get().(*item); it != nil; it, _ = e.spent.pool.Get().(*item) {
		all[it.e] = true
	}
	return all
}

// TestMemoryOfUnsettledClaimsIsNotUsedAgain ends claims in every way but by their holder: a Receive may still copy
// them.
func TestMemoryOfUnsettledClaimsIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t)
		s := subscribe(t, e, driver.SubscribeOptions{})
		other := subscribe(t, e, driver.SubscribeOptions{Instance: "other"})
		for i, end := range []func(){
			func() { time.Sleep(11 * time.Second) }, // the lease is lost
			func() { _ = s.Close(context.Background()) },
		} {
			publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint("m", i), Body: []byte("body")})
			first := take(t, s, 1)
			en := topicOf(e, "t").log.get(first[0].Ref.Pos)
			end()
			settle(t, other, driver.Ack, 0, take(t, other, 1)...)
			if en.state != atRest || en.unread != 1 || spentNow(e)[en] {
				t.Errorf("%d: a message in state %d with %d claims not given back is used again", i, en.state, en.unread)
			}
			if string(first[0].Body) != "body" {
				t.Errorf("%d: the delivery has changed to %q", i, first[0].Body)
			}
		}
	})
}

// TestMemoryIsUsedAgainOnce settles messages in all ways, and expects no entry twice in the pool.
func TestMemoryIsUsedAgainOnce(t *testing.T) {
	t.Parallel()
	e := open(t)
	if err := e.EnsureGroup(context.Background(), "t", "second", driver.GroupOptions{}); err != nil {
		t.Fatal(err)
	}
	s, second := subscribe(t, e, driver.SubscribeOptions{}), subscribe(t, e, driver.SubscribeOptions{Group: "second"})
	for i := range 300 {
		publish(t, e, &driver.Message{Topic: "t", ID: fmt.Sprint(i), Key: fmt.Sprint(i % 2), Body: []byte("body")})
	}
	for _, sub := range []*subscription{second, s} {
		for i := range 300 {
			settle(t, sub, []driver.Outcome{driver.Ack, driver.Drop, driver.Dead}[i%3], 0, take(t, sub, 1)...)
		}
	}
	for _, g := range topicOf(e, "t").groups {
		for _, it := range g.graves.all() {
			if errs := e.Delete(context.Background(),
				[]driver.Target{{Topic: "t", Group: g.name, Ref: it.e.ref()}}); errs[0] != nil {
				t.Fatal(errs[0])
			}
		}
	}
	seen := map[*item]bool{}
	for it, _ := e.spent.pool.Get().(*item); it != nil; it, _ = e.spent.pool.Get().(*item) {
		if seen[it] || it.e.state != atRest {
			t.Fatal("an entry is in the pool twice, or in use")
		}
		seen[it] = true
	}
	if len(seen) == 0 {
		t.Error("nothing is used again")
	}
}

// TestRecycledEntriesAreEmpty compares a recycled entry with a new one.
func TestRecycledEntriesAreEmpty(t *testing.T) {
	t.Parallel()
	for range 100 { // a pool may lose what it is given
		var s spentPrompts
		used := newPrompt()
		used.id, used.key, used.body, used.live, used.unread, used.flags, used.state = "id", "key", []byte("body"), 3, 2,
			0xff, fanned
		used.extra, used.expiry, used.contentType = &extra{}, &expiry{}, new(string)
		it := used.items
		it.e, it.Place, it.more, it.Tail, it.state = used, 7, &record{}, true, dead
		s.pool.Put(it)
		got := s.take()
		if len(got.body) != 0 || got.items == nil || *got.items != *newPrompt().items {
			t.Fatalf("an entry to use has body %q and room %+v", got.body, got.items)
		}
		got.body, got.items = nil, nil
		if fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", entry{}) {
			t.Fatalf("an entry to use is not empty: %+v", *got)
		}
		if got == used {
			return
		}
	}
	t.Fatal("nothing is used again")
}

// TestReadyTimes compares the time of the oldest with a list, over random items that come and go.
func TestReadyTimes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r readyTimes
		type member struct{ real, noted tick }
		var model []member
		now := tick(0)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if n := len(model); n > 0 && rapid.IntRange(0, 2).Draw(t, "remove") > 0 {
				at := rapid.IntRange(0, min(n-1, rapid.SampledFrom([]int{0, 3, n}).Draw(t, "reach"))).Draw(t, "which")
				r.remove(model[at].noted)
				model = slices.Delete(model, at, at+1)
			} else {
				now += tick(rapid.SampledFrom([]int{-1, 0, 1, int(readyGrain) / 2, 3 * int(readyGrain)}).Draw(t, "later"))
				model = append(model, member{now, r.add(now)})
			}
			oldest, count := never, map[tick]int{}
			for _, m := range model {
				oldest = min(oldest, m.real)
				count[m.noted]++
			}
			if got := r.oldest(); (got == never) != (oldest == never) || got != never &&
				(got < oldest-readyGrain || got > oldest+readyGrain) {
				t.Fatalf("the oldest is ready since %d, want %d", got, oldest)
			}
			compareReadyTimes(t, &r, count)
		}
	})
}

func compareReadyTimes(t *rapid.T, r *readyTimes, want map[tick]int) {
	got, empty := map[tick]int{}, 0
	for _, at := range r.times {
		if at.items == 0 {
			empty++
		} else {
			got[at.since] = at.items
		}
	}
	if !maps.Equal(got, want) || empty != r.empty || len(r.times) > 64 && empty > len(r.times)/2 {
		t.Fatalf("got %v with %d empty (counted %d), want %v", got, empty, r.empty, want)
	}
}
