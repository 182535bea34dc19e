package engine

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/uuid7"
)

// BenchmarkBacklog publishes messages without bodies that nobody takes, and reports what the indexes need for each: its
// id and key included, and what the tables of the indexes have left over.
func BenchmarkBacklog(b *testing.B) {
	for _, bc := range []struct {
		name   string
		groups int
		change func(m *driver.Message, i int)
	}{
		{"unkeyed", 1, func(*driver.Message, int) {}},
		{"3 groups", 3, func(*driver.Message, int) {}},
		{"10000 keys", 1, func(m *driver.Message, i int) { m.Key = "user-" + strconv.Itoa(i%10_000) }},
		{"own keys", 1, func(m *driver.Message, i int) { m.Key = "user-" + strconv.Itoa(i) }},
		{"delayed", 1, func(m *driver.Message,
			i int) {
			m.Delay = time.Hour + time.Duration(i*7919%1_000_003)*time.Millisecond
		}},
		{"TTL", 1, func(m *driver.Message, i int) { m.TTL = time.Hour + time.Duration(i*7919%1_000_003)*time.Millisecond }},
	} {
		b.Run(bc.name, func(b *testing.B) {
			for range b.N {
				b.ReportMetric(float64(backlogBytes(b, bc.groups, bc.change))/backlogSize, "B/message")
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/backlogSize, "ns/message")
			b.ReportMetric(0, "ns/op")
		})
	}
}

const backlogSize = 500_000

// backlogBytes returns how much the heap grows by a backlog.
func backlogBytes(b *testing.B, groups int, change func(m *driver.Message, i int)) uint64 {
	ctx := context.Background()
	e := New(testOptions())
	defer func() { _ = e.Close(ctx) }()
	for g := range groups {
		if err := e.EnsureGroup(ctx, "t", "group-"+strconv.Itoa(g), driver.GroupOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	const batch = 100
	before := heapInUse()
	msgs := make([]*driver.Message, batch)
	for i := 0; i < backlogSize; i += batch {
		now := time.Now()
		for j := range msgs {
			msgs[j] = &driver.Message{Topic: "t", ID: uuid7.New(now)}
			change(msgs[j], i+j)
		}
		if _, err := e.Publish(ctx, msgs, driver.PublishOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	grown := heapInUse() - before
	runtime.KeepAlive(e)
	return grown
}

// BenchmarkColdIDs notes the ids of a million cold messages, here and in a Go map, and reports what each takes. It pays
// for container.Slots.
func BenchmarkColdIDs(b *testing.B) {
	benchColdIDs(b, "this", func() func(hash, seq uint64) { return (&coldIDs{}).add })
	benchColdIDs(b, "map", func() func(hash, seq uint64) {
		x := map[uint64]uint32{}
		return func(hash, seq uint64) { x[hash] = uint32(seq) }
	})
}

func benchColdIDs(b *testing.B, name string, table func() (add func(hash, seq uint64))) {
	const size = 1_000_000
	b.Run(name, func(b *testing.B) {
		for range b.N {
			before, add := heapInUse(), table()
			for seq := range uint64(size) {
				add(stableHash(1, strconv.FormatUint(seq, 10)), seq+1)
			}
			b.ReportMetric(float64(heapInUse()-before)/size, "B/id")
			runtime.KeepAlive(add)
		}
	})
}
