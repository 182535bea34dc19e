package kafka_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka"
	"github.com/ferrymq/ferry/internal/kafkatest"
)

// again opens the same backend as another process does.
func again(t *testing.T, d *kafka.Driver, brokers []string) *kafka.Driver {
	t.Helper()
	other, err := kafka.New(t.Context(), kafka.Options{Brokers: brokers, Namespace: d.Namespace(), Partitions: 1,
		InternalPartitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, other) })
	return other
}

// TestDeadLettersStayOnTheBroker: a process that counts, lists and finds dead letters keeps none of them in memory.
//
// Lesson: L72
func TestDeadLettersStayOnTheBroker(t *testing.T) { // alone: it measures the heap
	const letters, size = 80, 256 << 10 // 20 MB
	c := fake(t)
	d := openFake(t, c)
	s := subscribe(t, d, "x")
	for i := range letters {
		m := message(fmt.Sprintf("m%03d", i), "k")
		m.Body = bytes.Repeat([]byte{byte(i)}, size)
		publish(t, d, m)
		settle(t, s, receive(t, s), driver.Dead, 0)
	}
	other := again(t, d, c.ListenAddrs())
	before := heap()
	st, err := other.Stats(t.Context(), "orders")
	if err != nil || st.Groups[0].Dead != letters {
		t.Fatalf("%d dead letters, %v", st.Groups[0].Dead, err)
	}
	if grown := heap() - before; grown > 10 {
		t.Errorf("%.0f MB of memory for %d MB of dead letters", grown, letters*size>>20)
	}
	q := driver.Query{Topic: "orders", Group: driver.DefaultGroup, State: driver.StateDead, Limit: 7}
	for i := 0; i < letters; {
		page, err := other.Browse(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			if want := fmt.Sprintf("m%03d", i); e.ID != want || len(e.Body) != size || e.Body[0] != byte(i) || e.Dead == nil {
				t.Fatalf("dead letter %d is %s with %d bytes", i, e.ID, len(e.Body))
			}
			i++
		}
		if q.Cursor = page.Next; (q.Cursor == "") != (i == letters) {
			t.Fatalf("after %d of %d dead letters the cursor is %q", i, letters, q.Cursor)
		}
	}
	byRef, err := other.Get(t.Context(), driver.Target{Topic: "orders", Group: driver.DefaultGroup,
		Ref: driver.Ref{Pos: 43}})
	if err != nil || len(byRef) != 1 || byRef[0].ID != "m042" {
		t.Errorf("Get by Ref: %v", err)
	}
	if err := other.Delete(t.Context(), []driver.Target{target("m050")})[0]; err != nil {
		t.Fatal(err)
	}
	if _, err := other.Get(t.Context(), target("m050")); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("Get of a deleted dead letter: %v", err)
	}
	if st, err = d.Stats(t.Context(), "orders"); err != nil || st.Groups[0].Dead != letters-1 {
		t.Errorf("%d dead letters after one was deleted elsewhere, %v", st.Groups[0].Dead, err)
	}
}

// TestBounds: a full topic refuses by the estimate, takes follow-ups all the same, and takes messages again when it is
// consumed.
func TestBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]driver.TopicConfig{"messages": {MaxMessages: 50}, "bytes": {MaxBytes: 50 << 10}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openFake(t, fake(t))
			if err := d.EnsureTopic(t.Context(), "orders", c); err != nil {
				t.Fatal(err)
			}
			s := subscribe(t, d, "x")
			accepted := 0
			for ; accepted < 500; accepted++ {
				m := message(fmt.Sprint("m", accepted), "k")
				m.Body = make([]byte, 1<<10)
				if _, err := d.Publish(t.Context(), []*driver.Message{m}, driver.PublishOptions{}); err != nil {
					hinted(t, err, driver.ErrFull)
					break
				}
			}
			if accepted < 25 || accepted > 100 {
				t.Fatalf("%d messages were accepted, with room for 50", accepted)
			}
			first := receive(t, s)
			follow := message("follow", "k")
			if err := s.Settle(t.Context(),
				[]driver.Settlement{{Delivery: first, Emit: []*driver.Message{follow}}})[0]; err != nil {
				t.Errorf("a follow-up in a full topic: %v", err)
			}
			for range accepted {
				settle(t, s, receive(t, s), driver.Ack, 0)
			}
			for deadline := time.Now().Add(time.Minute); ; {
				_, err := d.Publish(t.Context(), []*driver.Message{message("late", "k")}, driver.PublishOptions{})
				if err == nil {
					return
				}
				if !errors.Is(err, driver.ErrFull) || time.Now().After(deadline) {
					t.Fatalf("a topic that was consumed: %v", err)
				}
			}
		})
	}
}

// TestBrokenRecords: whatever is wrong with a record, it is kept whole, and what is around it is delivered in order and
// committed past it.
func TestBrokenRecords(t *testing.T) {
	t.Parallel()
	c := fake(t)
	d := openFake(t, c)
	publish(t, d, message("m0", "k"))
	plain, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DefaultProduceTopic(d.Namespace()+"orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	broken := []*kgo.Record{
		{Value: []byte("version"), Headers: []kgo.RecordHeader{{Key: "ferry", Value: []byte("0")}}},
		{Value: []byte("priority"), Headers: []kgo.RecordHeader{{Key: "ferry", Value: []byte("1 00000000 1 x")},
			{Key: "ferry-priority", Value: []byte("\xff\x00")}}},
		{Value: []byte("unknown"),
			Headers: []kgo.RecordHeader{{Key: "ferry-nonsense", Value: bytes.Repeat([]byte{0xff}, 100)}}},
		{Key: []byte("\x00\xff"), Value: bytes.Repeat([]byte{0}, 1000),
			Headers: []kgo.RecordHeader{{Key: "ferry-ttl", Value: []byte("soon")}}},
	}
	for i, r := range broken {
		raw := append([]byte{}, r.Value...)
		if err := plain.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		r.Value = raw
		publish(t, d, message(fmt.Sprint("m", i+1), "k"))
	}
	s := subscribe(t, d, "x")
	for i := range len(broken) + 1 {
		x := receive(t, s)
		if want := fmt.Sprint("m", i); x.ID != want {
			t.Fatalf("received %s, want %s", x.ID, want)
		}
		settle(t, s, x, driver.Ack, 0)
	}
	for deadline := time.Now().Add(time.Minute); d.Unparked("orders", driver.DefaultGroup) < int64(2*len(broken)+1); {
		if time.Now().After(deadline) {
			t.Fatalf("settled up to %d, want %d", d.Unparked("orders", driver.DefaultGroup), 2*len(broken)+1)
		}
		time.Sleep(10 * time.Millisecond)
	}
	page, err := d.Browse(t.Context(), driver.Query{Topic: "orders", State: driver.StateInvalid})
	if err != nil || len(page.Entries) != len(broken) {
		t.Fatalf("the parse-error store has %d records, want %d: %v", len(page.Entries), len(broken), err)
	}
	for i, e := range page.Entries {
		if !bytes.Equal(e.Raw, broken[i].Value) || e.Problem == "" {
			t.Errorf("record %d is kept as %q, problem %q; want %q", i, e.Raw, e.Problem, broken[i].Value)
		}
	}
}

// TestLooksAreBounded: a process that looks at a long backlog reads a window of it, says so, and finds what it has the
// place of.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	const backlog = 20_100
	c := fake(t)
	d := openFake(t, c)
	var last driver.Ref
	for at := 0; at < backlog; at += 1000 {
		var ms []*driver.Message
		for i := at; i < min(backlog, at+1000); i++ {
			ms = append(ms, message(fmt.Sprintf("m%06d", i), ""))
		}
		rs, err := d.Publish(t.Context(), ms, driver.PublishOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last = rs[len(rs)-1].Ref
	}
	other := again(t, d, c.ListenAddrs())
	page, err := other.Browse(t.Context(), driver.Query{Topic: "orders", Group: driver.DefaultGroup,
		State: driver.StateReady, Limit: 1000})
	if err != nil || len(page.Entries) != 1000 || page.Entries[0].ID != "m000000" || page.Next == "" {
		t.Errorf("Browse: %d entries, %v", len(page.Entries), err)
	}
	_, err = other.Get(t.Context(), target(fmt.Sprintf("m%06d", backlog-1)))
	hinted(t, err, driver.ErrNotFound)
	if es, err := other.Get(t.Context(), driver.Target{Topic: "orders", Group: driver.DefaultGroup,
		Ref: last}); err != nil || es[0].State != driver.StateReady {
		t.Errorf("Get by Ref beyond the window: %v", err)
	}
}

// TestCompressedDelays: delayed messages that are small on their way and large in memory do not exceed the bound of a
// partition by more than as much again, and all of them come, once.
func TestCompressedDelays(t *testing.T) {
	t.Parallel()
	for name, addrs := range map[string]func(t *testing.T) []string{
		"kfake": func(t *testing.T) []string { return fake(t).ListenAddrs() },
		"Kafka": func(t *testing.T) []string { return kafkatest.Shared(t).Addrs() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A process that does not run for a session fires again: a slow machine is not what is judged here.
			d, err := kafka.New(t.Context(), kafka.Options{Brokers: addrs(t), Namespace: "d" + rand.Text()[:8] + ".",
				Partitions: 1, InternalPartitions: 1, Session: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { end(t, d) })
			compressedDelays(t, d)
		})
	}
}

func compressedDelays(t *testing.T, d *kafka.Driver) {
	t.Helper()
	const many, size, most = 300, 64 << 10, 4<<20 + 64<<10 + 500
	var ms []*driver.Message
	for i := range many {
		m := message(fmt.Sprintf("m%03d", i), "")
		m.Body, m.Delay = make([]byte, size), 3*time.Second // in one tier, which they leave later
		ms = append(ms, m)
	}
	publish(t, d, ms...)
	s := subscribe(t, d, "x")
	stop, watched := make(chan struct{}), make(chan int)
	go func() {
		peak := 0
		for {
			peak = max(peak, d.Queued())
			select {
			case <-stop:
				watched <- peak
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	seen := map[string]int{}
	for len(seen) < many {
		x := receive(t, s)
		seen[x.ID]++
		settle(t, s, x, driver.Ack, 0)
	}
	close(stop)
	if peak := <-watched; peak > most {
		t.Errorf("%d bytes were in memory, of %d", peak, many*size)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
}

// TestParkedBodiesLeaveMemory: of what waits behind a failing key no more than 32 MiB of bodies stay in memory,
// whatever they were fetched with.
func TestParkedBodiesLeaveMemory(t *testing.T) { // alone: it measures the heap
	const many, size = 1000, 128 << 10 // 125 MB
	d := open(t, kafkatest.Shared(t), "p"+rand.Text()[:8]+".")
	defer end(t, d)
	s := subscribe(t, d, "x")
	publish(t, d, message("head", "k"))
	settle(t, s, receive(t, s), driver.Retry, time.Hour)
	before := heap()
	body := make([]byte, size)
	if _, err := rand.Read(body); err != nil {
		t.Fatal(err)
	}
	for i := range many {
		m := message(fmt.Sprint("m", i), "k")
		m.Body = body
		publish(t, d, m)
	}
	for deadline := time.Now().Add(2 * time.Minute); d.Unparked("orders", driver.DefaultGroup) < many+
		1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d are parked", d.Unparked("orders", driver.DefaultGroup))
		}
	}
	grown := heap() - before
	// what was fetched last goes a moment later
	for deadline := time.Now().Add(time.Minute); grown > 64 &&
		time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		grown = heap() - before
	}
	if grown > 64 {
		t.Errorf("%.0f MB of memory for %d MB that are parked", grown, many*size>>20)
	}
}

// TestLargeBodiesFail: where bodies of many megabytes are allowed, one is retried and buried as any other.
func TestLargeBodiesFail(t *testing.T) {
	t.Parallel()
	const size = 9 << 20
	d, err := kafka.New(t.Context(), kafka.Options{Brokers: kafkatest.Shared(t).Addrs(), Namespace: rand.Text() + ".",
		Partitions: 1, InternalPartitions: 1, MaxBody: size})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, d) })
	s := subscribe(t, d, "x")
	m := message("a", "k")
	m.Body = make([]byte, size)
	_, _ = rand.Read(m.Body) // no compression makes it smaller
	publish(t, d, m)
	settle(t, s, receive(t, s), driver.Retry, 0)
	settle(t, s, receive(t, s), driver.Dead, 0)
	found, err := d.Diagnose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if strings.Contains(f.Text, "max.message.bytes") {
			t.Errorf("a topic that was just made is said to be wrong: %s", f.Text)
		}
	}
}
