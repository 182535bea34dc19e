package compacted

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

func indexRecord(group string, id int, partition int32, offset int64, dead bool) *kgo.Record {
	r := &kgo.Record{Key: []byte(record.DeadKey(group, fmt.Sprint(id), 0)), Partition: partition, Offset: offset,
		Timestamp: time.Unix(1_800_000_000+offset/3, 0)}
	if dead {
		r.Value = []byte("x")
	}
	return r
}

// TestIndex compares the index with a plain map: counts, pages of any size, and what is replaced or deleted.
func TestIndex(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		x, model := NewIndex(record.DeadList), map[string]map[int]int64{"a": {}, "b": {}}
		for offset := range int64(rapid.IntRange(0, 400).Draw(r, "records")) {
			group, id, dead := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "group"), rapid.IntRange(0, 300).Draw(r, "id"),
				rapid.IntRange(0, 3).Draw(r, "dead") > 0
			x.Note(indexRecord(group, id, 0, offset, dead))
			if delete(model[group], id); dead {
				model[group][id] = offset
			}
		}
		limit := rapid.IntRange(1, 50).Draw(r, "limit")
		for group, want := range model {
			if got := x.Count(group); got != int64(len(want)) {
				r.Fatalf("group %s has %d letters, want %d", group, got, len(want))
			}
			var got, sorted []int64
			for behind := (Row{Offset: -1}); ; {
				page := x.page(group, behind, limit)
				for _, l := range page[:min(limit, len(page))] {
					got = append(got, l.Offset)
				}
				if len(page) <= limit {
					break
				}
				behind = readCursor(page[limit-1].cursor())
			}
			for _, offset := range want {
				sorted = append(sorted, offset)
			}
			slices.Sort(sorted)
			if !slices.Equal(got, sorted) {
				r.Fatalf("pages of %d show %v, want %v", limit, got, sorted)
			}
		}
	})
}

// BenchmarkIndex measures what the index of a million dead letters needs.
func BenchmarkIndex(b *testing.B) {
	const n = 1_000_000
	used := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / (1 << 20)
	}
	for b.Loop() {
		before, x := used(), NewIndex(record.DeadList)
		for i := range n {
			x.Note(indexRecord("billing", i, 0, int64(i), true))
		}
		b.ReportMetric(used()-before, "MB/million")
		start := time.Now()
		if page := x.page("billing", Row{second: 1}, 100); len(page) != 101 {
			b.Fatalf("a page of %d", len(page))
		}
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/page")
	}
}
