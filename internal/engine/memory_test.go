package engine

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/ferrymq/ferry/driver"
)

// TestNothingRemainsAfterDrain moves all kinds of messages through, and expects every index to be empty.
func TestNothingRemainsAfterDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := open(t)
		s := subscribe(t, e, driver.SubscribeOptions{MaxRun: 3})
		for i := range 20_000 {
			m := &driver.Message{Topic: "t", ID: fmt.Sprint(i), OwnID: i%7 == 0, Body: []byte("body")}
			if i%2 == 0 {
				m.Key = fmt.Sprint("k", i%999)
			}
			if i%3 == 0 {
				m.Delay = time.Duration(i) * time.Millisecond
			}
			if i%5 == 0 {
				m.TTL = 2 * time.Minute
			}
			if i%500 == 0 {
				m.DedupID, m.DedupWindow = m.ID, time.Minute
			}
			publish(t, e, m)
		}
		time.Sleep(20 * time.Second)
		for ds := take(t, s, 100); len(ds) > 0; ds = take(t, s, 100) {
			settle(t, s, driver.Ack, 0, ds...)
		}
		time.Sleep(time.Hour) // windows end, and so does every timer
		requireEmpty(t, topicOf(e, "t"))
	})
}

func requireEmpty(t *testing.T, tp *topic) {
	t.Helper()
	tp.mu.Lock()
	defer tp.mu.Unlock()
	g := tp.groups[0]
	s := g.members[0]
	for what, n := range map[string]int{
		"log": tp.log.count, "segments beyond one": max(0, len(tp.log.segments)-1), "ids": tp.ids.Len(),
		"own ids": tp.ownIDs.ids.Len(), "own id heap": tp.ownIDs.until.Len(), "own id queue": len(tp.ownIDs.next),
		"dedup ids":  tp.dedupIDs.ids.Len(),
		"dedup heap": tp.dedupIDs.until.Len(), "dedup queue": len(tp.dedupIDs.next), "delayed": tp.delayed.Len(),
		"expiries": tp.expires.Len(), "waiting": tp.waiting.Len(), "settled": len(tp.settled), "chains": g.queue.Keys(),
		"in flight": s.holder.Len(), "engine": int(tp.e.stored.Load()), "messages": int(tp.stats.Messages),
		"bytes": int(tp.stats.Bytes),
	} {
		if n != 0 {
			t.Errorf("%s: %d remain", what, n)
		}
	}
	if !g.queue.Empty() {
		t.Error("something can be claimed")
	}
	if len(g.ready.times) > 0 || g.awaited() {
		t.Error("a list is not empty")
	}
	if tp.armed != never || tp.next() != never {
		t.Errorf("the timer is armed for %d, next %d", tp.armed, tp.next())
	}
}

// TestDelayedMessagesAreCompact publishes a million delayed messages and measures the heap.
func TestDelayedMessagesAreCompact(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second and 400 MB")
	}
	const n, batch = 1_000_000, 1000
	e := New(testOptions())
	defer func() { _ = e.Close(context.Background()) }()
	before := heapInUse()
	msgs := make([]*driver.Message, batch)
	for i := 0; i < n; i += batch {
		for j := range msgs {
			id := fmt.Sprintf("0198c0de-0000-7000-8000-%012d", i+j)
			msgs[j] = &driver.Message{Topic: "t", ID: id, Delay: time.Hour + time.Duration((i*7919)%n)*time.Second}
		}
		publish(t, e, msgs...)
	}
	perMessage := (heapInUse() - before) / n
	runtime.KeepAlive(e)
	t.Logf("%d bytes for each delayed message without a body, its id included", perMessage)
	if perMessage > 270 {
		t.Errorf("%d bytes for each delayed message, want at most 270", perMessage)
	}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestSizes pins the sizes of what there may be millions of, to those of the allocator.
func TestSizes(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(entry{}); n > 144 {
		t.Errorf("an entry has %d bytes, want at most 144", n)
	}
	if n := unsafe.Sizeof(prompt{}); n > 256 {
		t.Errorf("an entry with room for a group has %d bytes, want at most 256", n)
	}
}

// TestAllocations pins what the hot path allocates for each message.
func TestAllocations(t *testing.T) {
	const batch = 100
	e := New(testOptions())
	defer func() { _ = e.Close(context.Background()) }()
	s := subscribe(t, e, driver.SubscribeOptions{})
	msgs := make([]*driver.Message, batch)
	for i := range msgs {
		msgs[i] = &driver.Message{Topic: "t", ID: fmt.Sprint(i), Body: make([]byte, 128)}
	}
	ss := make([]driver.Settlement, 0, batch)
	drain := func() {
		for got := 0; got < batch; {
			ds, _ := s.Receive(context.Background(), batch)
			ss = ss[:0]
			for _, d := range ds {
				ss = append(ss, driver.Settlement{Delivery: d})
			}
			s.Settle(context.Background(), ss)
			got += len(ds)
		}
	}
	all := testing.AllocsPerRun(100, func() {
		_, _ = e.Publish(context.Background(), msgs, driver.PublishOptions{})
		drain()
	})
	if perMessage := all / batch; perMessage > 1 {
		t.Errorf("publish, receive and ack allocate %.2f for each message, want little: their memory is used again, but "+
			"for what a pool loses under the race detector", perMessage)
	}
}
