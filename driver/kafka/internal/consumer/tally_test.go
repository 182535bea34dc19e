package consumer

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/offsets"
	"github.com/ferrymq/ferry/driver/kafka/internal/registry"
	"github.com/ferrymq/ferry/internal/scheduler"
)

// walked is the tally of a partition by looking at all its items, and which of them a commit must name.
func walked(p *partition) (t offsets.Tally, named map[*Item]byte) {
	t, named = p.tally, map[*Item]byte{}
	t.Ready, t.Inflight, t.Waiting, t.Next = uint64(len(p.pending)), 0, 0, p.done.Next
	for it := range p.items.all() {
		switch {
		case it.state == ready:
			t.Ready++
		case it.state == inflight:
			t.Inflight++
		case it.state == waiting:
			t.Waiting++
		}
		if kind := p.listed(it); kind != 0 {
			named[it] = kind
		}
	}
	return t, named
}

// TestCommitsNeedNoWalk: whatever becomes of messages, what a commit says of a partition is what a look at all its
// items would say.
func TestCommitsNeedNoWalk(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		m := bareGroups(time.Minute).newMember(&registry.TopicState{Name: "orders"}, driver.DefaultGroup, driver.Strict)
		list, _ := offsets.WriteOffsets(offsets.ReturnedPart, []int64{1, 2, 5}, 1000)
		p := m.newPartition(0, kadm.Offset{LeaderEpoch: -1, Metadata: list})
		p.end, p.running = -1, true
		m.parts[0] = p
		s := &subscription{m: m, o: driver.SubscribeOptions{Lease: time.Hour, MaxRun: 2, MaxInflight: 100},
			holder: scheduler.NewHolder[Item](driver.DefaultWeights, false)}
		m.mu.Lock()
		defer m.mu.Unlock()
		var claims []*claim
		feed := func(r *rapid.T) {
			off := p.done.Next
			msg := &driver.Message{ID: fmt.Sprint(off), Topic: "orders", Key: []string{"", "a", "b"}[off%3]}
			p.feed(fetched{&kgo.Record{Offset: off}, &Item{Msg: msg, offset: off, order: off}, nil})
		}
		claimed := func(use func(c *claim)) func(*rapid.T) {
			return func(r *rapid.T) {
				if len(claims) == 0 {
					return
				}
				i := rapid.IntRange(0, len(claims)-1).Draw(r, "claim")
				c := claims[i]
				claims = append(claims[:i], claims[i+1:]...)
				if !c.ended {
					use(c)
				}
			}
		}
		settle := func(o driver.Settlement) func(*rapid.T) {
			return claimed(func(c *claim) {
				s.apply(&settling{c: c, o: &o, cause: driver.CauseRetry,
					first: &kgo.Record{Key: []byte(c.it.retryKey()), Offset: c.it.offset}})
			})
		}
		r.Repeat(map[string]func(*rapid.T){
			"feed": feed,
			"claim": func(r *rapid.T) {
				for _, c := range m.take(s, rapid.IntRange(1, 4).Draw(r, "most"), time.Now()) {
					s.deliver(c, time.Now())
					claims = append(claims, c)
				}
			},
			"ack":       settle(driver.Settlement{Outcome: driver.Ack}),
			"retry":     settle(driver.Settlement{Outcome: driver.Retry, After: time.Hour}),
			"give back": claimed(func(c *claim) { m.takeBack(c, driver.CauseReleased) }),
			"lose":      claimed(func(c *claim) { m.takeBack(c, driver.CauseLeaseExpired) }),
			"": func(r *rapid.T) {
				want, named := walked(p)
				if got := p.current(); got != want {
					r.Fatalf("the tally is %+v, and by a walk %+v", got, want)
				}
				got := map[*Item]byte{}
				for _, it := range p.named() {
					if kind := p.listed(it); kind != 0 {
						got[it] = kind
					}
				}
				if len(got) != len(named) {
					r.Fatalf("%d items are named, and by a walk %d", len(got), len(named))
				}
				for it, kind := range named {
					if got[it] != kind {
						r.Fatalf("item %d is named as %q, and by a walk as %q", it.offset, got[it], kind)
					}
				}
			},
		})
	})
}
