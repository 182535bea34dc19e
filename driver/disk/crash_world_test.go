package disk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Topics and groups of the crash tests. The second group of a topic is slow: it leaves messages behind.
var (
	crashTopics = []string{"jobs", "follow-ups"}
	crashGroups = []string{"default", "slow"}
)

// place is a message as one group sees it.
type place struct{ topic, id, group string }

// event is what a caller knew at some time. A crash is judged by the events before it.
type event struct {
	kind  eventKind
	id    string
	place place
	emits string // settling: the follow-up that comes with it
	count int    // received: how it was counted
	begun bool   // received: and its handler has begun
	value crashValue
}

type eventKind uint8

const (
	publishing eventKind = iota // was sent
	published                   // was acknowledged
	received
	beginning // the start of its handler was sent
	ending    // a settlement that ends it was sent
	ended     // and acknowledged
	returning
	returned // a settlement that keeps it was acknowledged
	moved    // an operator put it elsewhere in its order
	pausing  // a pause, or its end, was sent
	paused   // and acknowledged
	writing  // a named value was sent
	wrote    // and acknowledged
	read     // and somebody saw it
)

// message is what was published.
type sent struct {
	*driver.Message
	number int // in the order of publishing
	fleet  int // messages of one atomic publish share a number
}

// world is one store and everybody who uses it.
type world struct {
	t     testing.TB
	rng   *rand.Rand
	d     *Driver
	o     Options
	subs  map[string]driver.Subscription // by group, of the first topic
	held  map[string][]*driver.Delivery
	done  map[*driver.Delivery]bool // of those held: Begin was acknowledged
	sent  map[string]*sent
	ids   int
	fl    int
	given uint64 // revisions that callers were told in earlier lives

	mu     sync.Mutex
	events []event
}

func (w *world) note(es ...event) {
	w.mu.Lock()
	w.events = append(w.events, es...)
	w.mu.Unlock()
}

func (w *world) seen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.events)
}

func (w *world) ok(err error, what string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

var ctx = context.Background()

// start opens the store and joins the groups.
func (w *world) start() {
	w.t.Helper()
	w.d = open(w.t, w.o)
	w.subs, w.held, w.done = map[string]driver.Subscription{}, map[string][]*driver.Delivery{}, map[*driver.Delivery]bool{}
	for _, topic := range crashTopics {
		for _, g := range crashGroups {
			w.ok(w.d.EnsureGroup(ctx, topic, g, driver.GroupOptions{}), "EnsureGroup")
		}
	}
	for _, g := range crashGroups {
		s, err := w.d.Subscribe(ctx, driver.SubscribeOptions{Topic: crashTopics[0], Group: g, Instance: "crash", MaxRun: 2,
			Lease: time.Hour})
		w.ok(err, "Subscribe")
		w.subs[g] = s
	}
}

// message makes a message whose body tells what it is.
func (w *world) message(topic string) *driver.Message {
	w.ids++
	m := &driver.Message{ID: fmt.Sprintf("m%04d", w.ids), Topic: topic, Headers: map[string]string{"n": fmt.Sprint(w.ids)}}
	m.Body = fmt.Appendf(nil, "%s %0*d", m.ID, 1+w.rng.IntN(200), 0)
	if w.rng.IntN(3) > 0 {
		m.Key = fmt.Sprint("k", w.rng.IntN(3))
	}
	if w.rng.IntN(2) == 0 { // the others may become cold
		m.Priority = driver.Priority(w.rng.IntN(4) - 1)
	}
	if w.rng.IntN(8) == 0 {
		deduplicated(m)
	}
	if w.rng.IntN(6) == 0 {
		m.Delay = time.Duration(1+w.rng.IntN(4000)) * time.Millisecond
	}
	m.OwnID = w.rng.IntN(4) == 0
	w.sent[m.ID] = &sent{Message: m, number: w.ids}
	return m
}

// step does one thing of many.
func (w *world) step() {
	switch n := w.rng.IntN(100); {
	case n < 15:
		w.burst()
	case n < 21:
		w.writeValues()
	case n < 41:
		w.publish()
	case n < 60:
		w.receive()
	case n < 83:
		w.settle()
	case n < 88:
		w.begin()
	case n < 91:
		time.Sleep(time.Duration(w.rng.IntN(2000)) * time.Millisecond)
	case n < 92:
		w.pause()
	case n < 95:
		w.replay()
	case n < 96:
		w.remove()
	case n < 97:
		w.purge()
	case n < 98:
		w.scratch()
	default:
		w.restart()
	}
}

func (w *world) publish() {
	var ms []*driver.Message
	o := driver.PublishOptions{Atomic: w.rng.IntN(4) == 0}
	if o.Atomic {
		w.fl++
	}
	for range 1 + w.rng.IntN(4) {
		m := w.message(crashTopics[w.rng.IntN(2)])
		if o.Atomic {
			w.sent[m.ID].fleet = w.fl
		}
		ms = append(ms, m)
	}
	w.publishNow(ms, o)
}

func (w *world) group() string {
	if w.rng.IntN(4) == 0 {
		return crashGroups[1]
	}
	return crashGroups[0]
}

func (w *world) receive() {
	g := w.group()
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	ds, err := w.subs[g].Receive(short, 1+w.rng.IntN(4))
	if err != nil && short.Err() == nil {
		w.t.Fatalf("Receive: %v", err)
	}
	for _, d := range ds {
		w.check(d.Message)
		w.note(event{kind: received, place: place{d.Topic, d.ID, g}, count: d.Deliveries})
	}
	w.held[g] = append(w.held[g], ds...)
}

// check compares a message with what was published.
func (w *world) check(m *driver.Message) {
	w.t.Helper()
	s := w.sent[m.ID]
	switch {
	case s == nil:
		w.t.Fatalf("%q was never published", m.ID)
	case string(s.Body) != string(m.Body) || s.Key != m.Key || s.Topic != m.Topic || s.Priority != m.Priority ||
		m.Headers["n"] != s.Headers["n"]:
		w.t.Fatalf("%q came back changed: %+v, want %+v", m.ID, m, s.Message)
	}
}

func (w *world) settle() {
	g := w.group()
	if len(w.held[g]) == 0 {
		return
	}
	i := w.rng.IntN(len(w.held[g]))
	d := w.held[g][i]
	w.held[g] = append(w.held[g][:i], w.held[g][i+1:]...)
	s := driver.Settlement{Delivery: d, Outcome: []driver.Outcome{driver.Ack, driver.Ack, driver.Ack, driver.Drop,
		driver.Retry,
		driver.Retry, driver.Release, driver.Dead}[w.rng.IntN(8)], Failure: &driver.Failure{Error: "failed"}}
	if s.Outcome == driver.Retry || s.Outcome == driver.Release {
		s.After = time.Duration(w.rng.IntN(3)) * time.Second
	}
	at := place{d.Topic, d.ID, g}
	before, after := event{kind: returning, place: at}, event{kind: returned, place: at}
	if s.Outcome == driver.Ack || s.Outcome == driver.Drop {
		before.kind, after.kind = ending, ended
	}
	if w.rng.IntN(4) == 0 {
		m := w.message(crashTopics[w.rng.IntN(2)])
		s.Emit = []*driver.Message{m}
		before.emits, after.emits = m.ID, m.ID
		w.note(event{kind: publishing, id: m.ID})
	}
	w.note(before)
	if before.kind == returning {
		w.mayReturn(g, d.Key)
	}
	err := w.subs[g].Settle(ctx, []driver.Settlement{s})[0]
	w.forgetReturned(g)
	if err != nil {
		if s.Emit != nil {
			delete(w.sent, s.Emit[0].ID)
		}
		return // returned with an earlier one of its key
	}
	w.note(after)
}

// mayReturn notes that deliveries of a key may return with one that is about to.
func (w *world) mayReturn(g, key string) {
	for _, d := range w.held[g] {
		if d.Key == key {
			w.note(event{kind: returning, place: place{d.Topic, d.ID, g}})
		}
	}
}

// forgetReturned drops deliveries that a settlement of their key returned. The others are held, whatever was thought.
func (w *world) forgetReturned(g string) {
	kept := w.held[g][:0]
	for i, err := range w.subs[g].Extend(ctx, w.held[g]) {
		d := w.held[g][i]
		if err == nil {
			w.note(event{kind: received, place: place{d.Topic, d.ID, g}, count: d.Deliveries, begun: w.done[d]})
			kept = append(kept, d)
		}
	}
	w.held[g] = kept
}

// begin starts the handlers of some deliveries.
func (w *world) begin() {
	g := w.group()
	ds := w.held[g][:w.rng.IntN(len(w.held[g])+1)]
	for _, d := range ds {
		w.note(event{kind: beginning, place: place{d.Topic, d.ID, g}})
	}
	for i, err := range w.subs[g].Begin(ctx, ds) {
		w.ok(err, "Begin")
		w.done[ds[i]] = true
		w.note(event{kind: received, place: place{ds[i].Topic, ds[i].ID, g}, count: ds[i].Deliveries, begun: true})
	}
}

// replay makes dead letters due again.
func (w *world) replay() {
	page, err := w.d.Browse(ctx, driver.Query{Topic: crashTopics[0], Group: crashGroups[0], State: driver.StateDead})
	w.ok(err, "Browse")
	for _, e := range page.Entries {
		w.note(event{kind: moved, place: place{e.Topic, e.ID, e.Group}})
		err := w.d.Move(ctx, []driver.Move{{Target: driver.Target{Topic: e.Topic, Group: e.Group, ID: e.ID}}})[0]
		w.ok(err, "Move")
	}
}

// remove deletes something that is ready.
func (w *world) remove() {
	page, err := w.d.Browse(ctx, driver.Query{Topic: crashTopics[1], Group: crashGroups[1], State: driver.StateReady,
		Limit: 3})
	w.ok(err, "Browse")
	for _, e := range page.Entries {
		at := place{e.Topic, e.ID, e.Group}
		w.note(event{kind: ending, place: at})
		w.ok(w.d.Delete(ctx, []driver.Target{{Topic: e.Topic, Group: e.Group, ID: e.ID}})[0], "Delete")
		w.note(event{kind: ended, place: at})
	}
}

// purge empties the second topic, whose beginning is then removed in one piece.
func (w *world) purge() {
	var all []event
	for id, s := range w.sent {
		for _, g := range crashGroups {
			if at := (place{s.Topic, id, g}); s.Topic == crashTopics[1] {
				all = append(all, event{kind: ending, place: at})
			}
		}
	}
	w.note(all...)
	_, err := w.d.Purge(ctx, crashTopics[1], "")
	w.ok(err, "Purge")
	for i := range all {
		all[i].kind = ended
	}
	w.note(all...)
}

// scratch makes a topic and deletes it again, while others are written.
func (w *world) scratch() {
	m := w.message("scratch")
	w.note(event{kind: publishing, id: m.ID})
	_, err := w.d.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{Level: driver.Written})
	w.ok(err, "Publish")
	for id, s := range w.sent {
		if s.Topic == "scratch" {
			for _, g := range crashGroups {
				w.note(event{kind: ending, place: place{s.Topic, id, g}})
			}
		}
	}
	w.ok(w.d.DeleteTopic(ctx, "scratch"), "DeleteTopic")
	if _, err := w.d.Get(ctx, driver.Target{Topic: "scratch", ID: m.ID}); err == nil {
		w.t.Errorf("%q outlived its topic", m.ID)
	}
}

// restart closes and opens the store.
func (w *world) restart() {
	w.stop()
	w.start()
}

func (w *world) stop() {
	w.noteHeld(returning)
	w.ok(w.d.Close(ctx), "Close")
	w.noteHeld(returned)
}

func (w *world) noteHeld(kind eventKind) {
	for g, ds := range w.held {
		for _, d := range ds {
			w.note(event{kind: kind, place: place{d.Topic, d.ID, g}})
		}
	}
}
