package scheduler

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// thing is an item, with what the model knows of it.
type thing struct {
	Node[thing]
	id   int
	key  string
	lane int
	is   state // out, behind for whatever is ready, blocking, held
	by   *holding
}

// holding is a holder, with what it should have in the order in which leases end.
type holding struct {
	Holder[thing]
	strict bool
	has    []*thing
}

// world is a queue, and a model of it that searches where the queue has indexes.
type world struct {
	*rapid.T
	q       Queue[thing]
	offers  int
	all     []*thing
	holders []*holding
	places  uint64
}

func TestQueueAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{T: t}
		w.q = New[thing](func() { w.offers++ })
		for _, strict := range []bool{false, true, false} {
			h := &holding{Holder: NewHolder[thing]([Lanes]int{1, 2, 4, 8}, strict), strict: strict}
			w.holders = append(w.holders, h)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":        func(*rapid.T) { w.check() },
			"add":     func(*rapid.T) { w.add() },
			"take":    func(*rapid.T) { w.take() },
			"end":     func(*rapid.T) { w.end() },
			"renew":   func(*rapid.T) { w.renew() },
			"block":   func(*rapid.T) { w.change(behind, w.block) },
			"ready":   func(*rapid.T) { w.change(blocking, w.ready) },
			"skip":    func(*rapid.T) { w.change(behind, w.remove) },
			"unblock": func(*rapid.T) { w.change(blocking, w.remove) },
		})
	})
}

func (w *world) draw(n int, label string) int { return rapid.IntRange(0, n-1).Draw(w.T, label) }

// add brings a new item, now and then before others.
func (w *world) add() {
	w.places += 10
	x := &thing{id: len(w.all), key: rapid.SampledFrom([]string{"", "", "a", "b", "c"}).Draw(w.T, "key"),
		lane: w.draw(Lanes, "lane")}
	if x.Place = w.places; rapid.Bool().Draw(w.T, "early") {
		x.Place = uint64(10*w.draw(len(w.all)+1, "place") + 1 + len(w.all)%9)
	}
	if slices.ContainsFunc(w.all, func(o *thing) bool { return o.Place == x.Place }) {
		x.Place = w.places
	}
	w.all = append(w.all, x)
	w.ready(x)
}

func (w *world) ready(x *thing) {
	w.q.Ready(&x.Node, x.key, x.lane)
	x.is = behind
}

func (w *world) block(x *thing) {
	if x.key == "" {
		w.remove(x)
		return
	}
	w.q.Block(&x.Node, x.key)
	x.is = blocking
}

func (w *world) remove(x *thing) {
	w.q.Remove(&x.Node)
	x.is = out
}

func (w *world) toTail(x *thing) {
	w.remove(x)
	w.places += 10
	x.Place = w.places
	w.ready(x)
}

// change does something to an item of a state.
func (w *world) change(is state, do func(*thing)) {
	if xs := w.having(func(x *thing) bool { return x.is == is }); len(xs) > 0 {
		do(xs[w.draw(len(xs), "which")])
	}
}

func (w *world) take() {
	h := w.holders[w.draw(len(w.holders), "holder")]
	first := w.q.Next(&h.Holder, NoLane)
	if want := w.next(h); (first != nil) != (len(want) > 0) || first != nil && !slices.Contains(want, first) {
		w.Fatalf("next is %+v, want one of %d", first, len(want))
	}
	if first == nil {
		return
	}
	most, bad := 1+w.draw(4, "most"), w.draw(7, "bad")
	fits := func(x *thing) bool { return x.id%7 != bad }
	want := w.run(first, most, fits)
	got := w.q.Take(&h.Holder, &first.Node, most, fits, nil)
	if !slices.Equal(got, want) {
		w.Fatalf("took %d, want %d", len(got), len(want))
	}
	for _, x := range got {
		x.is, x.by = held, h
		h.has = append(h.has, x)
	}
}

// next are the items that h may be given: in strict priority one, otherwise the first of each lane.
func (w *world) next(h *holding) (first []*thing) {
	for lane := Lanes - 1; lane >= 0; lane-- {
		xs := w.having(func(x *thing) bool { return x.lane == lane && w.claimable(x) })
		if len(xs) > 0 {
			first = append(first, xs[0])
		}
		if h.strict && len(first) > 0 {
			break
		}
	}
	return first
}

// run is what is taken with an item.
func (w *world) run(first *thing, most int, fits func(*thing) bool) []*thing {
	run := []*thing{first}
	for _, x := range w.members(first.key) {
		if first.key == "" || x.Place <= first.Place {
			continue
		}
		if len(run) >= most || x.is != behind || !fits(x) {
			break
		}
		run = append(run, x)
	}
	return run
}

// end ends a lease in one of the ways in which drivers do.
func (w *world) end() {
	h := w.holders[w.draw(len(w.holders), "holder")]
	if len(h.has) == 0 {
		return
	}
	x := h.has[w.draw(len(h.has), "which")]
	w.release(x)
	if rapid.Bool().Draw(w.T, "return those behind it") {
		for f := range x.Followers() {
			if f.is == held {
				w.release(f)
				w.ready(f)
			}
		}
	}
	[]func(*thing){w.ready, w.block, w.remove, w.toTail}[w.draw(4, "outcome")](x)
}

func (w *world) release(x *thing) {
	w.q.End(&x.by.Holder, &x.Node)
	x.by.has = slices.DeleteFunc(x.by.has, func(o *thing) bool { return o == x })
	x.is, x.by = out, nil
	if x.key != "" {
		x.is = blocking
	}
	for _, o := range w.all { // before it is said what becomes of it
		if o.Offered() && !w.claimable(o) {
			w.Fatalf("item %d of key %q is offered while a lease of its key ends", o.id, o.key)
		}
	}
}

func (w *world) renew() {
	h := w.holders[w.draw(len(w.holders), "holder")]
	if len(h.has) == 0 {
		return
	}
	i := w.draw(len(h.has), "which")
	x := h.has[i]
	h.has = slices.Delete(h.has, i, i+1)
	if rapid.Bool().Draw(w.T, "forfeit") {
		h.Forfeit(&x.Node)
		h.has = slices.Insert(h.has, 0, x)
	} else {
		h.Renew(&x.Node)
		h.has = append(h.has, x)
	}
}

// having returns the items that the model knows so, in the order of their places.
func (w *world) having(what func(*thing) bool) (xs []*thing) {
	for _, x := range w.all {
		if what(x) {
			xs = append(xs, x)
		}
	}
	slices.SortFunc(xs, func(a, b *thing) int { return cmp.Compare(a.Place, b.Place) })
	return xs
}

func (w *world) members(key string) []*thing {
	return w.having(func(x *thing) bool { return x.key == key && x.is != out })
}

// claimable is the rule of keys: the first one, if it is ready and none is held.
func (w *world) claimable(x *thing) bool {
	if x.is != behind {
		return false
	}
	if x.key == "" {
		return true
	}
	ms := w.members(x.key)
	return ms[0] == x && !slices.ContainsFunc(ms, func(m *thing) bool { return m.is == held })
}

func (w *world) check() {
	claimable := 0
	for _, x := range w.all {
		can := w.claimable(x)
		if can {
			claimable++
		}
		if x.Offered() != can || x.Chained() != (x.key != "" && x.is != out) {
			w.Fatalf("item %d of key %q is offered: %v, in its key: %v, want %v", x.id, x.key, x.Offered(), x.Chained(), can)
		}
	}
	if w.q.Empty() != (claimable == 0) || w.offers < claimable {
		w.Fatalf("%d can be claimed; empty: %v, %d were offered", claimable, w.q.Empty(), w.offers)
	}
	w.checkKeys()
	for _, h := range w.holders {
		if got := slices.Collect(h.All()); !slices.Equal(got, h.has) || h.Len() != len(h.has) || len(got) > 0 &&
			h.First() != got[0] {
			w.Fatalf("a holder has %d of %d, want %d", len(got), h.Len(), len(h.has))
		}
	}
}

func (w *world) checkKeys() {
	keys := 0
	for _, key := range []string{"a", "b", "c"} {
		want := w.members(key)
		if len(want) > 0 {
			keys++
		}
		if got := slices.Collect(w.q.Members(key)); !slices.Equal(got, want) {
			w.Fatalf("key %q has %d members, want %d", key, len(got), len(want))
		}
		if head := w.q.Head(key); (head != nil) != (len(want) > 0) || head != nil && head != want[0] {
			w.Fatalf("key %q begins with %+v", key, head)
		}
	}
	if w.q.Keys() != keys {
		w.Fatalf("%d keys, want %d", w.q.Keys(), keys)
	}
}

// TestWaiting compares a Waiting with a sorted list.
func TestWaiting(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := NewWaiting[thing]()
		until := map[*thing]int64{}
		for i := range rapid.IntRange(1, 100).Draw(t, "items") {
			x := &thing{id: i}
			x.Place, until[x] = uint64(i), rapid.Int64Range(0, 20).Draw(t, "until")
			w.Add(&x.Node, until[x])
			if i%3 == 2 {
				w.Remove(&x.Node)
				delete(until, x)
			}
			if _, waits := w.Until(&x.Node); waits != x.Waits() || waits != (i%3 != 2) {
				t.Fatalf("item %d waits: %v", i, waits)
			}
		}
		for last := int64(0); w.Len() > 0; {
			x := w.First()
			at, _ := w.Until(&x.Node)
			if at != until[x] || at < last || w.Next() != at {
				t.Fatalf("the first waits until %d, want %d; before it one waited until %d", at, until[x], last)
			}
			w.Remove(&x.Node)
			delete(until, x)
			last = at
		}
		if len(until) > 0 {
			t.Fatalf("%d are lost", len(until))
		}
	})
}
