package kafka_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
)

// pages counts what a listing has, and demands its order.
func pages(t *testing.T, d *kafka.Driver, q driver.Query, size int) (n int) {
	t.Helper()
	for {
		page, err := d.Browse(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			body := e.Raw
			if e.Message != nil {
				body = e.Body
			}
			if len(body) != size || body[0] != byte(n) || e.State != q.State {
				t.Fatalf("entry %d is %s with %d bytes", n, e.State, len(body))
			}
			n++
		}
		if len(page.Entries) > q.Limit {
			t.Fatalf("a page of %d, with a limit of %d", len(page.Entries), q.Limit)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return n
		}
	}
}

// TestListingsStayOnTheBroker: what is held, delayed or broken is counted and listed page by page, and none of it stays
// in memory.
func TestListingsStayOnTheBroker(t *testing.T) { // alone: it measures the heap
	const many, size = 80, 256 << 10 // 20 MB of each
	c := fake(t)
	d := openFake(t, c)
	for i := range many {
		body := make([]byte, size)
		if _, err := rand.Read(body); err != nil { // what is compressed takes more room here than there
			t.Fatal(err)
		}
		body[0] = byte(i)
		held, delayed := message(fmt.Sprintf("h%03d", i), "k"), message(fmt.Sprintf("d%03d", i), "k")
		held.Body, held.Delay, delayed.Body, delayed.Delay = body, driver.Hold, body, time.Hour
		publish(t, d, held, delayed)
		if err := d.StoreRaw(t.Context(), "orders", body); err != nil {
			t.Fatal(err)
		}
	}
	s := subscribe(t, d, "x") // stores the broken ones
	for deadline := time.Now().Add(time.Minute); d.Unparked("orders",
		driver.DefaultGroup) < many; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the broken records are not stored")
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	end(t, d)
	d = again(t, d, c.ListenAddrs())
	before := heap()
	st, err := d.Stats(t.Context(), "orders")
	if err != nil || st.Held != many || st.Delayed != many || st.Invalid != many {
		t.Fatalf("%+v, %v", st, err)
	}
	for _, state := range []driver.State{driver.StateHeld, driver.StateDelayed, driver.StateInvalid} {
		if n := pages(t, d, driver.Query{Topic: "orders", State: state, Limit: 7}, size); n != many {
			t.Errorf("%d are %s, want %d", n, state, many)
		}
	}
	if grown := heap() - before; grown > 10 {
		t.Errorf("%.0f MB of memory for looking at %d MB", grown, 3*many*size>>20)
	}
	if es, err := d.Get(t.Context(), driver.Target{Topic: "orders", ID: "h042"}); err != nil ||
		es[0].State != driver.StateHeld || es[0].Body[0] != 42 {
		t.Errorf("Get of a held message: %v", err)
	}
	es, err := d.Get(t.Context(), driver.Target{Topic: "orders", ID: "d042"})
	if err != nil || es[0].State != driver.StateDelayed || es[0].Body[0] != 42 {
		t.Errorf("Get of a delayed message: %v", err)
	}
	if err := d.DeleteTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	publish(t, d, message("m", "k"))
	if st, err = d.Stats(t.Context(), "orders"); err != nil || st.Held+st.Delayed+st.Invalid != 0 {
		t.Errorf("after the topic was deleted: %+v, %v", st, err)
	}
}

// TestBrowseDelayedReadsOnce: however many pages, what is delayed is read from the brokers about once, each message is
// listed once, and none is left out.
func TestBrowseDelayedReadsOnce(t *testing.T) {
	t.Parallel()
	const many, limit = 3000, 50
	c := fake(t)
	d := openFake(t, c)
	var ms, others []*driver.Message
	for i := range many {
		m := message(fmt.Sprintf("d%04d", i), "")
		// in three tiers, each for minutes at least
		m.Delay = []time.Duration{10 * time.Minute, time.Hour, 10 * time.Hour}[i%3]
		ms = append(ms, m)
		if i%10 == 0 {
			m := message(fmt.Sprint("o", i), "")
			m.Topic, m.Delay = "others", time.Hour
			others = append(others, m)
		}
	}
	publish(t, d, ms...)
	publish(t, d, others...)
	var fetches atomic.Int32
	c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		if req.SessionEpoch == -1 && len(req.Topics) > 0 { // who fires has a session
			if info := c.TopicIDInfo(req.Topics[0].TopicID); info != nil && strings.Contains(info.Topic, "_ferry.delay") {
				fetches.Add(1)
			}
		}
		return nil, nil, false
	})
	seen, pages := map[string]bool{}, 0
	q := driver.Query{Topic: "orders", State: driver.StateDelayed, Limit: limit, MaxScan: 60}
	for ; ; pages++ {
		page, err := d.Browse(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Entries) > limit || page.Scanned > q.MaxScan {
			t.Fatalf("a page of %d, of %d looked at", len(page.Entries), page.Scanned)
		}
		for _, e := range page.Entries {
			if seen[e.ID] || e.State != driver.StateDelayed || e.Topic != "orders" {
				t.Fatalf("%s of %s, %s, seen before: %v", e.ID, e.Topic, e.State, seen[e.ID])
			}
			seen[e.ID] = true
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if len(seen) != many || pages < many/limit-1 {
		t.Errorf("%d of %d listed, in %d pages", len(seen), many, pages)
	}
	if n := fetches.Load(); n == 0 || n > 12 { // of about 200 KB in each of three tiers
		t.Errorf("%d reads for %d pages", n, pages)
	}
	for _, cursor := range []string{"tier.x.0.0", "tier.99999.0.0", "0.0.0.0", "tier.0"} {
		_, err := d.Browse(t.Context(), driver.Query{Topic: "orders", State: driver.StateDelayed, Cursor: cursor})
		hinted(t, err, driver.ErrInvalid)
	}
}
