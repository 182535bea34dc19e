package engine

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestRandomSteps runs random calls of everything, and audits all indexes after each.
func TestRandomSteps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { randomSteps(t, seed, 400) })
		})
	}
}

// TestRandomStepsWithAStore is the same over a store, with nearly everything cold; now and then it is opened again.
func TestRandomStepsWithAStore(t *testing.T) {
	t.Parallel()
	var seen coldSteps
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(60) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { randomStepsWithAStore(t, seed, 300, &seen) })
			})
		}
	})
	t.Logf("something was cold after %d steps, and something behind it after %d", seen.cold.Load(), seen.behind.Load())
	if seen.cold.Load() < 1000 || seen.behind.Load() < 100 {
		t.Error("that is too little to prove anything")
	}
}

// coldSteps counts after how many steps there was something to see.
type coldSteps struct{ cold, behind atomic.Int64 }

func (c *coldSteps) look(e *Engine) {
	for _, t := range e.allTopics() {
		t.mu.Lock()
		if t.cold.count > 0 {
			c.cold.Add(1)
		}
		for _, g := range t.groups {
			if g.behind.Len() > 0 {
				c.behind.Add(1)
			}
		}
		t.mu.Unlock()
	}
}

// countsOf is what a topic has, in a form that can be compared.
func countsOf(t *topic) (counts []int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, g := range t.groups {
		counts = append(counts, int64(i), g.count[ready]+g.count[inflight], g.count[waiting], g.count[dead], t.stats.Messages,
			t.stats.Bytes)
	}
	return counts
}

func randomStepsWithAStore(t *testing.T, seed uint64, steps int, seen *coldSteps) {
	s := newMapStore()
	w := &walker{T: t, Rand: rand.New(rand.NewPCG(seed, 2)), held: map[*subscription][]*driver.Delivery{}}
	w.order = driver.Order(seed % 2)
	w.reopen(s, 1+int(seed%16))
	calls := append(w.calls(), func() {
		if w.IntN(3) == 0 {
			w.reopen(s, 1+int(seed%16))
		}
	})
	for i := range steps {
		n := w.IntN(len(calls))
		calls[n]()
		synctest.Wait()
		audit(t, w.e)
		seen.look(w.e)
		for _, topic := range w.e.allTopics() {
			report, err := w.e.Audit(context.Background(), topic.name, false)
			if err != nil || len(report.Problems) > 0 {
				t.Errorf("audit: %v %v", err, report.Problems)
			}
		}
		if t.Failed() {
			t.Fatalf("after step %d of seed %d, call %d", i, seed, n)
		}
	}
	if err := w.e.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// reopen ends the engine, cleanly or as a crash would, and opens another over its store. The counts are the same.
func (w *walker) reopen(s *mapStore, window int) {
	before := map[string][]int64{}
	if w.e != nil {
		synctest.Wait() // nothing happens by itself now
		for _, t := range w.e.allTopics() {
			before[t.name] = countsOf(t)
		}
		s.mu.Lock()
		copied := maps.Clone(s.records)
		s.mu.Unlock()
		if err := w.e.Close(context.Background()); err != nil {
			w.Error(err)
		}
		if w.IntN(2) == 0 {
			s.records = copied
		}
	}
	w.e = New(storeOptions(s, window))
	if err := w.e.Restore(context.Background(), nil); err != nil {
		w.Fatal(err)
	}
	for _, t := range w.e.allTopics() {
		after := countsOf(t)
		if want := before[t.name]; len(before) > 0 && !slices.Equal(after, want) {
			w.Errorf("topic %s has %v after it was opened, want %v", t.name, after, want)
		}
	}
	w.subs, w.held = nil, map[*subscription][]*driver.Delivery{}
}

// walker makes random calls.
type walker struct {
	*testing.T
	*rand.Rand
	e     *Engine
	order driver.Order
	subs  []*subscription
	held  map[*subscription][]*driver.Delivery
	ids   []string
}

func randomSteps(t *testing.T, seed uint64, steps int) {
	w := &walker{T: t, Rand: rand.New(rand.NewPCG(seed, 1)), e: open(t), held: map[*subscription][]*driver.Delivery{}}
	w.order = driver.Order(seed % 2)
	calls := w.calls()
	w.subscribe()
	for i := range steps {
		n := w.IntN(len(calls))
		calls[n]()
		synctest.Wait()
		if audit(t, w.e); t.Failed() {
			t.Fatalf("after step %d of seed %d, call %d", i, seed, n)
		}
	}
}

func (w *walker) calls() []func() {
	return []func(){
		w.publish, w.publish, w.publish, w.receive, w.receive, w.receive, w.settle, w.settle, w.settle, w.settle, w.extend,
		w.begin,
		w.subscribe, w.closeOne, w.pass, w.pass, w.move, w.move, w.delete, w.manage, w.browse, w.repeat,
	}
}

func (w *walker) publish() {
	var msgs []*driver.Message
	for range 1 + w.IntN(5) {
		m := &driver.Message{Topic: "t", ID: fmt.Sprint(len(w.ids)), Body: make([]byte, w.IntN(9)),
			Priority: driver.Priority(w.IntN(4) - 1)}
		w.ids = append(w.ids, m.ID)
		if w.IntN(3) > 0 {
			m.Key = fmt.Sprint("k", w.IntN(3))
		}
		switch w.IntN(8) {
		case 0:
			m.Delay = time.Duration(w.IntN(5000)) * time.Millisecond
		case 1:
			m.Delay = driver.Hold
		}
		if w.IntN(5) == 0 {
			m.TTL = time.Duration(5000+w.IntN(9000)) * time.Millisecond
		}
		if w.IntN(6) == 0 {
			m.DedupID, m.DedupWindow = fmt.Sprint("d", w.IntN(9)), 3*time.Second
		}
		m.OwnID = w.IntN(2) == 0
		msgs = append(msgs, m)
	}
	_, _ = w.e.Publish(context.Background(), msgs, driver.PublishOptions{Atomic: w.IntN(3) == 0})
	if w.IntN(10) == 0 {
		_ = w.e.StoreRaw(context.Background(), "t", []byte("garbage"))
	}
}

func (w *walker) subscribe() {
	if len(w.subs) == 4 {
		return
	}
	s := subscribe(w, w.e, driver.SubscribeOptions{
		Group: []string{"default", "audit"}[w.IntN(2)], Order: w.order, MaxRun: 1 + w.IntN(4), MaxInflight: 1 + w.IntN(8),
		Lease: time.Duration(1+w.IntN(4)) * time.Second, StrictPriority: w.IntN(4) == 0,
	})
	w.subs = append(w.subs, s)
}

func (w *walker) pick() *subscription {
	if len(w.subs) == 0 {
		w.subscribe()
	}
	return w.subs[w.IntN(len(w.subs))]
}

func (w *walker) receive() {
	s := w.pick()
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(w.IntN(2))*time.Millisecond)
	defer cancel()
	ds, _ := s.Receive(ctx, 1+w.IntN(6))
	w.held[s] = append(w.held[s], ds...)
}

func (w *walker) settle() {
	s := w.pick()
	ds := w.held[s]
	w.Shuffle(len(ds), func(i, j int) { ds[i], ds[j] = ds[j], ds[i] })
	n := min(len(ds), 1+w.IntN(3))
	w.held[s] = ds[n:]
	var ss []driver.Settlement
	for _, d := range ds[:n] {
		o := driver.Settlement{Delivery: d, Outcome: driver.Outcome(w.IntN(5)), Unseen: w.IntN(2) == 0,
			Failure: &driver.Failure{Error: "e"}}
		if w.IntN(2) == 0 {
			o.After = time.Duration(w.IntN(3000)) * time.Millisecond
		}
		if w.IntN(6) == 0 {
			id := fmt.Sprint(len(w.ids))
			w.ids = append(w.ids, id)
			o.Emit = []*driver.Message{{Topic: []string{"t", "other"}[w.IntN(2)], ID: id, Key: d.Key}}
		}
		ss = append(ss, o)
	}
	s.Settle(context.Background(), ss)
}

func (w *walker) extend() {
	s := w.pick()
	s.Extend(context.Background(), w.held[s])
}

// begin starts handlers, those of lost deliveries too.
func (w *walker) begin() {
	s := w.pick()
	s.Begin(context.Background(), w.held[s][:w.IntN(len(w.held[s])+1)])
}

func (w *walker) closeOne() {
	if w.IntN(3) > 0 || len(w.subs) == 0 {
		return
	}
	i := w.IntN(len(w.subs))
	_ = w.subs[i].Close(context.Background())
	w.subs = append(w.subs[:i:i], w.subs[i+1:]...)
}

func (w *walker) pass() { time.Sleep(time.Duration(w.IntN(3000)) * time.Millisecond) }

func (w *walker) target() driver.Target {
	t := driver.Target{Topic: "t", Group: []string{"", "default", "audit"}[w.IntN(3)]}
	if w.IntN(2) == 0 && len(w.ids) > 0 {
		t.ID = w.ids[w.IntN(len(w.ids))]
	} else {
		t.Ref = driver.Ref{Pos: 1 + w.Uint64N(uint64(len(w.ids)+9))}
	}
	return t
}

func (w *walker) move() {
	var ms []driver.Move
	for range 8 {
		m := driver.Move{Target: w.target(), After: time.Duration(w.IntN(2)*w.IntN(3000)) * time.Millisecond}
		if w.IntN(3) == 0 {
			m.Edit = &driver.Message{Key: fmt.Sprint("k", w.IntN(3)), Body: []byte("edited"), Priority: driver.High}
		}
		ms = append(ms, m)
	}
	w.e.Move(context.Background(), ms)
}

// browse demands that a listing contains what is counted, in order.
func (w *walker) browse() {
	ctx := context.Background()
	st, err := w.e.Stats(ctx, "t")
	if err != nil {
		return
	}
	for _, g := range st.Groups {
		q, n, last := driver.Query{Topic: "t", Group: g.Group, State: driver.StateReady, Limit: 1 + w.IntN(7)}, int64(0),
			uint64(0)
		for more := true; more; more = q.Cursor != "" {
			page, err := w.e.Browse(ctx, q)
			if err != nil {
				w.Fatal(err)
			}
			for _, en := range page.Entries {
				if en.Ref.Pos <= last || en.Group != g.Group || en.State != driver.StateReady {
					w.Errorf("group %s lists %v as %s after %d", g.Group, en.Ref, en.State, last)
				}
				last = en.Ref.Pos
				n++
			}
			q.Cursor = page.Next
		}
		if n != g.Ready {
			w.Errorf("group %s lists %d ready messages, and counts %d", g.Group, n, g.Ready)
		}
	}
}

// repeat publishes a message again that is there.
func (w *walker) repeat() {
	page, _ := w.e.Browse(context.Background(), driver.Query{Topic: "t", Group: "default", State: driver.StateReady})
	if len(page.Entries) == 0 {
		return
	}
	en := page.Entries[w.IntN(len(page.Entries))]
	if en.ID == "" {
		return // not decoded yet
	}
	rs, err := w.e.Publish(context.Background(), []*driver.Message{{Topic: "t", ID: en.ID}},
		driver.PublishOptions{Atomic: w.IntN(2) == 0})
	if err != nil || !rs[0].Duplicate || rs[0].Ref != en.Ref {
		w.Errorf("publishing %s again: %+v, %v; it is at %v", en.ID, rs, err, en.Ref)
	}
}

func (w *walker) delete() { w.e.Delete(context.Background(), []driver.Target{w.target()}) }

func (w *walker) manage() {
	ctx := context.Background()
	group := []string{"default", "audit", "third"}[w.IntN(3)]
	switch w.IntN(9) {
	case 0:
		_, _ = w.e.Purge(ctx, "t", []string{"", group}[w.IntN(2)])
	case 1, 2:
		_ = w.e.Pause(ctx, "t", []string{"", group}[w.IntN(2)], w.IntN(3) == 0)
	case 3:
		_ = w.e.AlterTopic(ctx, "t", driver.TopicConfig{Keep: time.Duration(w.IntN(2)*w.IntN(9)) * time.Second,
			ExpiredDead: w.IntN(2) == 0, MaxMessages: int64(w.IntN(40))})
	case 4:
		_ = w.e.EnsureGroup(ctx, "t", "third", driver.GroupOptions{Order: w.order,
			Start: driver.Position{From: driver.PositionKind(w.IntN(2))}})
	case 5:
		_ = w.e.DeleteGroup(ctx, "t", group)
	default:
		to := driver.Position{From: driver.PositionKind(w.IntN(4)),
			Time: time.Now().Add(-time.Duration(w.IntN(9)) * time.Second)}
		to.Ref = driver.Ref{Pos: 1 + w.Uint64N(uint64(len(w.ids)+1))}
		_, _ = w.e.Reset(ctx, "t", group, driver.ResetOptions{To: to, Force: w.IntN(2) == 0, DryRun: w.IntN(5) == 0})
	}
}
