package kafka

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// delays are the messages that are not due yet, of all topics: a compacted topic, followed by every process and
// fired by the one that owns the partition.
type delays struct {
	d     *Driver
	rows  *table
	owner *kgo.Client

	mu     sync.Mutex
	heap   alarmRows
	owned  map[int32]bool
	firing map[*kgo.Record]bool
	ring   chan struct{}

	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

// alarmRows are rows by the time something happens to them.
type alarmRows []alarmRow

type alarmRow struct {
	at time.Time
	r  *kgo.Record
}

func (h alarmRows) Len() int           { return len(h) }
func (h alarmRows) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarmRows) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *alarmRows) Push(x any) { *h = append(*h, x.(alarmRow)) }

// Pop implements heap.Interface.
func (h *alarmRows) Pop() any {
	old := *h
	a := old[len(old)-1]
	*h = old[:len(old)-1]
	return a
}

func delayKey(topic, id string) string { return topic + "/" + id }

// delayRecord stores a message that is due later.
func (d *Driver) delayRecord(m *driver.Message, s state) *kgo.Record {
	key := delayKey(m.Topic, m.ID)
	r := toRecord(d.delayTopic(), partitionOf(key, d.o.InternalPartitions), m)
	r.Headers = append(r.Headers, s.header(), kgo.RecordHeader{Key: keyHeader, Value: []byte(m.Key)}, kgo.RecordHeader{Key: topicHeader, Value: []byte(m.Topic)})
	r.Key = []byte(key)
	return r
}

// Headers of a delayed record: its key is not the message's.
const (
	keyHeader   = "ferry-delayed-key"
	topicHeader = "ferry-delayed-topic"
)

func delayRef(r *kgo.Record) driver.Ref {
	if s, ok := stateOf(r); ok && !s.Ref.IsZero() {
		return s.Ref
	}
	return driver.Ref{Partition: r.Partition, Pos: uint64(r.Offset) + 1, Sub: subDelay}
}

// delayed is a row, read.
type delayed struct {
	r   *kgo.Record
	m   *driver.Message
	s   state
	due time.Time // zero: held
}

func readDelayed(r *kgo.Record) (delayed, bool) {
	c := *r
	c.Headers, c.Key = nil, nil
	topic := ""
	for _, h := range r.Headers {
		switch h.Key {
		case keyHeader:
			c.Key = h.Value
		case topicHeader:
			topic = string(h.Value)
		default:
			c.Headers = append(c.Headers, h)
		}
	}
	s, ok := stateOf(r)
	m, err := fromRecord(topic, &c)
	if !ok || err != nil {
		return delayed{}, false
	}
	x := delayed{r: r, m: m, s: s}
	if !s.Hold {
		x.due = r.Timestamp.Add(s.After + time.Millisecond) // the broker's time is cut to milliseconds
		if !m.At.IsZero() && s.Cause == driver.CauseFirst {
			x.due = m.At
		}
	}
	return x, true
}

func (x delayed) expires() time.Time {
	if x.m.TTL <= 0 || x.s.Spared {
		return time.Time{}
	}
	return x.m.PublishedAt.Add(x.m.TTL)
}

// startDelays begins to follow and fire what is delayed.
func (d *Driver) startDelays(ctx context.Context) error {
	d.mu.Lock()
	have, closed := d.delays, d.closed
	d.mu.Unlock()
	if have != nil {
		return nil
	}
	if closed {
		return errClosed()
	}
	release, err := d.single(ctx, "delays")
	if err != nil {
		return err
	}
	defer release()
	d.mu.Lock()
	have = d.delays
	d.mu.Unlock()
	if have != nil {
		return nil
	}
	if err := d.createTopics(ctx, topicSpec{d.delayTopic(), d.o.InternalPartitions, compacted()}); err != nil {
		return err
	}
	w := &delays{d: d, owned: map[int32]bool{}, firing: map[*kgo.Record]bool{}, ring: make(chan struct{}, 1)}
	w.owner, err = kgo.NewClient(d.clientOptions(kgo.ConsumerGroup(d.delayTopic()), kgo.ConsumeTopics(d.delayTopic()), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.SessionTimeout(session), kgo.HeartbeatInterval(heartbeat), kgo.FetchMaxWait(fetchWait),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtEnd()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, ps map[string][]int32) { w.own(ps[d.delayTopic()], true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, ps map[string][]int32) { w.own(ps[d.delayTopic()], false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, ps map[string][]int32) { w.own(ps[d.delayTopic()], false) }))...)
	if err != nil {
		return err
	}
	w.owner.PauseFetchTopics(d.delayTopic()) // membership is all that is wanted of it
	run, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.rows = d.follow(d.delayTopic(), span(d.o.InternalPartitions), w.changed)
	w.tasks.Add(1)
	go w.run(run)
	d.mu.Lock()
	closed = d.closed
	if !closed {
		d.delays = w
	}
	d.mu.Unlock()
	if closed {
		w.close()
		return errClosed()
	}
	return nil
}

func (w *delays) close() {
	w.cancel()
	w.owner.Close()
	w.tasks.Wait()
	w.rows.close()
}

func (w *delays) poke() {
	select {
	case w.ring <- struct{}{}:
	default:
	}
}

// own notes which partitions this process fires. What became due before is looked at again.
func (w *delays) own(ps []int32, owned bool) {
	w.mu.Lock()
	for _, p := range ps {
		w.owned[p] = owned
	}
	w.mu.Unlock()
	if owned {
		for _, r := range w.rows.all() {
			w.changed(r)
		}
	}
}

// changed is told of each new row.
func (w *delays) changed(r *kgo.Record) {
	if r.Value == nil {
		return
	}
	x, ok := readDelayed(r)
	if !ok {
		return
	}
	at := x.due
	if e := x.expires(); !e.IsZero() && (at.IsZero() || e.Before(at)) {
		at = e
	}
	if at.IsZero() {
		return
	}
	w.mu.Lock()
	heap.Push(&w.heap, alarmRow{at, r})
	w.mu.Unlock()
	w.poke()
}

func (w *delays) run(ctx context.Context) {
	defer w.tasks.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		w.fire(ctx, time.Now())
		w.mu.Lock()
		wait := time.Hour
		if len(w.heap) > 0 {
			wait = max(0, time.Until(w.heap[0].at))
		}
		w.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-w.ring:
		case <-timer.C:
		}
	}
}

// fire moves what is due to its topic: stored there first, then deleted here. A crash between the two repeats it.
func (w *delays) fire(ctx context.Context, now time.Time) {
	var due, expired []delayed
	w.mu.Lock()
	for len(w.heap) > 0 && !w.heap[0].at.After(now) {
		a := heap.Pop(&w.heap).(alarmRow)
		if !w.owned[a.r.Partition] || w.firing[a.r] {
			continue // its owner does, or we when we become it
		}
		if x, ok := readDelayed(a.r); ok {
			w.firing[a.r] = true
			if e := x.expires(); !e.IsZero() && !e.After(now) {
				expired = append(expired, x)
			} else {
				due = append(due, x)
			}
		}
	}
	w.mu.Unlock()
	if len(due)+len(expired) == 0 {
		return
	}
	var records []*kgo.Record
	var fired []delayed
	for _, x := range due {
		if w.rows.get(string(x.r.Key)) != x.r {
			// Either not yet in the table, which follows a moment after us, or replaced.
			if err := w.rows.waitFor(ctx, x.r); err != nil || w.rows.get(string(x.r.Key)) != x.r {
				continue
			}
		}
		t, err := w.d.existing(ctx, x.m.Topic)
		if err != nil {
			continue
		}
		r := toRecord(w.d.mainTopic(x.m.Topic), w.d.place(t, x.m.Key), x.m)
		if x.s.Cause != driver.CauseFirst {
			r.Headers = append(r.Headers, state{Cause: x.s.Cause, Offset: -1}.header())
		}
		records, fired = append(records, r), append(fired, x)
	}
	errs := w.d.produceEach(ctx, records)
	var ended []*kgo.Record
	for i, x := range fired {
		if errs[i] != nil {
			w.again(x, now)
			continue
		}
		ended = append(ended, tombstone(x.r.Topic, x.r.Partition, string(x.r.Key)))
	}
	for _, x := range expired {
		ended = append(ended, tombstone(x.r.Topic, x.r.Partition, string(x.r.Key)))
	}
	_ = w.d.produce(ctx, ended...) // a repeat of what could not be deleted is a duplicate, not a loss
	w.mu.Lock()
	for _, x := range append(fired, expired...) {
		delete(w.firing, x.r)
	}
	w.mu.Unlock()
}

// again tries to fire a row a little later.
func (w *delays) again(x delayed, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	heap.Push(&w.heap, alarmRow{now.Add(time.Second), x.r})
}
