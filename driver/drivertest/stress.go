package drivertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// stress lets producers and consumers loose on one topic: consumers fail, forget, release and leave at random. At the
// end every accepted message was settled exactly once, in the order of its key, and never held twice at a time.
func stress(t *T) {
	const producers, consumers, keys = 4, 6, 12
	each := 60
	if t.Virtual {
		each = 1000
	}
	l := &ledger{t: t, left: producers * each, messages: map[string]*account{}, finished: map[string]int{}}
	t.group("work")
	ctx, stop := context.WithCancel(t.within(10 * t.Patience))
	defer stop()
	var running sync.WaitGroup
	for c := range consumers {
		w := &stressWorker{l: l, r: t.random(uint64(100 + c)), name: fmt.Sprint("c", c), stop: stop}
		running.Go(func() { w.run(ctx) })
	}
	for p := range producers {
		r := t.random(uint64(p))
		running.Go(func() { l.produce(ctx, r, p, each, keys) })
	}
	running.Wait()
	l.settle()
}

// ledger knows what happened to every message, as its producers and consumers saw it.
type ledger struct {
	t *T

	mu       sync.Mutex
	left     int
	messages map[string]*account
	finished map[string]int // how many messages of a key are settled for good
}

// account is one message in the ledger.
type account struct {
	key     string
	seq     int // in its key
	final   int // how often it was settled for good
	starts  int
	ran     bool             // a handler saw it
	holder  *driver.Delivery // who has it, as far as we know
	retries int              // attempted
}

func (l *ledger) produce(ctx context.Context, r *rand.Rand, producer, n, keys int) {
	seqs := map[string]int{}
	for i := 0; i < n; {
		var ms []*driver.Message
		for range min(1+r.IntN(8), n-i) {
			k := "" // each key has one producer, so that its order is known
			if r.IntN(4) > 0 {
				k = fmt.Sprintf("p%d-%d", producer, r.IntN(keys))
			}
			m := l.t.msg("", key(k), prio(lanes[r.IntN(4)]))
			m.Body = []byte(m.ID)
			l.mu.Lock()
			l.messages[m.ID] = &account{key: k, seq: seqs[k]}
			l.mu.Unlock()
			seqs[k]++
			ms = append(ms, m)
			i++
		}
		if _, err := l.t.Publish(ctx, ms, driver.PublishOptions{}); err != nil {
			l.t.Errorf("Publish: %v", err)
			return
		}
		time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
	}
}

// start notes a delivery and checks it against what is known.
func (l *ledger) start(d *driver.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.messages[d.ID]
	if a == nil || string(d.Body) != d.ID || a.key != d.Key {
		l.t.Errorf("delivered what was never published: %s", describe([]*driver.Delivery{d}))
		return
	}
	if a.final > 0 {
		l.t.Errorf("%s was delivered after it was settled: %s", d.ID, describe([]*driver.Delivery{d}))
	}
	if h := a.holder; h != nil && time.Now().Before(h.LeaseUntil) {
		l.t.Errorf("%s has two live leases, %s and %s", d.ID, h.Token, d.Token)
	}
	if d.Attempt > 1+a.retries || d.Attempt < 1 || d.Deliveries < 1 || a.ran && d.Cause == driver.CauseFirst {
		l.t.Errorf("after %d starts and %d retries: %s", a.starts, a.retries, describe([]*driver.Delivery{d}))
	}
	a.starts++
	a.holder = d
}

// run notes that a handler starts with d: only then must its predecessors be settled, since a run is held in advance.
func (l *ledger) run(d *driver.Delivery) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.messages[d.ID]
	if a == nil {
		return
	}
	a.ran = true
	if d.Key != "" && time.Now().Before(d.LeaseUntil) && a.seq > l.finished[d.Key] {
		l.t.Errorf("key %s: message %d started although only %d are settled", d.Key, a.seq, l.finished[d.Key])
	}
}

// giveUp notes that d is about to be settled or forgotten, so that another lease may follow.
func (l *ledger) giveUp(d *driver.Delivery, o driver.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.messages[d.ID]
	if a.holder == d {
		a.holder = nil
	}
	if o == driver.Retry {
		a.retries++
	}
	if d.Key != "" && (o == driver.Ack || o == driver.Dead) {
		l.finished[d.Key]++ // before the backend may let the follower go
	}
}

// done notes how the settlement of d ended, and reports whether all is settled.
func (l *ledger) done(d *driver.Delivery, o driver.Outcome, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	final := o == driver.Ack || o == driver.Dead
	switch {
	case err != nil && final && d.Key != "":
		l.finished[d.Key]--
	case err == nil && final:
		a := l.messages[d.ID]
		if a.final++; a.final > 1 {
			l.t.Errorf("%s was settled %d times", d.ID, a.final)
		}
		l.left--
	}
	return l.left == 0
}

// settle is the final reckoning.
func (l *ledger) settle() {
	t := l.t
	for id, a := range l.messages {
		if a.final != 1 {
			t.Errorf("%s (key %q, %d starts) was settled %d times", id, a.key, a.starts, a.final)
		}
	}
	if t.Caps.Counts != driver.CountsExact {
		return
	}
	t.countsOf("work", 0, 0, 0, t.groupStats("work").Dead)
	g := t.groupStats("work")
	if n := uint64(len(l.messages)); g.Received != n || g.Acked+uint64(g.Dead) != n {
		t.Errorf("of %d messages the group received %d, acked %d, buried %d", n, g.Received, g.Acked, g.Dead)
	}
}
