package disk

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// burst lets several callers publish, settle and receive at once, so that their steps share writes and syncs.
func (w *world) burst() {
	var wg sync.WaitGroup
	for caller := range 2 + w.rng.IntN(5) {
		calls := w.prepare(caller)
		wg.Go(func() {
			for _, ms := range calls {
				w.publishNow(ms, driver.PublishOptions{})
			}
		})
	}
	settled := map[string][]*driver.Delivery{}
	for _, g := range crashGroups {
		n := w.rng.IntN(len(w.held[g]) + 1)
		settled[g], w.held[g] = w.held[g][:n:n], w.held[g][n:]
		for _, d := range settled[g] {
			wg.Go(func() { w.ackNow(g, d) })
		}
	}
	got, most, acks := make([][]*driver.Delivery, len(crashGroups)), 1+w.rng.IntN(8), w.rng.IntN(4)
	for i, g := range crashGroups {
		wg.Go(func() { got[i] = w.consumeNow(g, most, acks) })
	}
	wg.Wait()
	for i, g := range crashGroups {
		w.held[g] = append(w.held[g], got[i]...)
	}
}

// prepare makes what one caller will publish. Only its own messages have an order.
func (w *world) prepare(caller int) (calls [][]*driver.Message) {
	for range 1 + w.rng.IntN(3) {
		var ms []*driver.Message
		for range 1 + w.rng.IntN(3) {
			m := w.message(crashTopics[0])
			m.Key = fmt.Sprint("caller", caller)
			ms = append(ms, m)
		}
		calls = append(calls, ms)
	}
	return calls
}

func (w *world) publishNow(ms []*driver.Message, o driver.PublishOptions) {
	for _, m := range ms {
		w.note(event{kind: publishing, id: m.ID})
	}
	if _, err := w.d.Publish(ctx, ms, o); err != nil {
		w.t.Errorf("Publish: %v", err)
		return
	}
	for _, m := range ms {
		w.note(event{kind: published, id: m.ID})
	}
}

func (w *world) ackNow(g string, d *driver.Delivery) {
	at := place{d.Topic, d.ID, g}
	w.note(event{kind: ending, place: at})
	if err := w.subs[g].Settle(ctx, []driver.Settlement{{Delivery: d}})[0]; err != nil {
		w.t.Errorf("Settle: %v", err)
		return
	}
	w.note(event{kind: ended, place: at})
}

// consumeNow receives what there is for a moment, settles some of it, and returns the rest.
func (w *world) consumeNow(g string, most, acks int) (rest []*driver.Delivery) {
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	for len(rest) < most {
		ds, err := w.subs[g].Receive(short, most)
		if err != nil && short.Err() == nil {
			w.t.Errorf("Receive: %v", err)
		}
		if err != nil {
			return rest
		}
		for _, d := range ds {
			if s := w.sent[d.ID]; s == nil || string(s.Body) != string(d.Body) {
				w.t.Errorf("%q came back changed, or was never published", d.ID)
			}
			w.note(event{kind: received, place: place{d.Topic, d.ID, g}, count: d.Deliveries})
		}
		for len(ds) > 0 && acks > 0 {
			w.ackNow(g, ds[0])
			ds, acks = ds[1:], acks-1
		}
		rest = append(rest, ds...)
	}
	return rest
}
