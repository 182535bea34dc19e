package compacted

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/kafka/internal/cluster"
	"github.com/ferrymq/ferry/driver/kafka/internal/record"
)

// Index says where the rows of a compacted topic are, not what is in them. About 80 bytes each.
type Index struct {
	*Table
	// listOf says to which listing a key belongs: "" for none. Keys of the same name are one row, whatever follows the
	// name.
	listOf func(key string) (list, name string)

	mu     sync.Mutex
	at     map[RowKey]Row
	lists  []string // by row.list
	counts []int64
	over   bool // there are more than maxRows
}

// RowKey is the hash of the name of a row.
type RowKey [16]byte

// Row is where a row is, and when it was stored.
type Row struct {
	Offset    int64
	second    uint32
	Partition uint16
	list      uint16
	Suffix    uint32 // what follows the name in its key, hashed
}

const maxRows = 5_000_000

// Hashed is the hash of a name.
func Hashed(name string) RowKey {
	sum := sha256.Sum256([]byte(name))
	return RowKey(sum[:16])
}

// SuffixOf is what follows the name in a key, hashed.
func SuffixOf(key, name string) uint32 { return crc32.ChecksumIEEE([]byte(key[len(name):])) }

// NewIndex is empty.
func NewIndex(listOf func(key string) (list, name string)) *Index {
	return &Index{listOf: listOf, at: map[RowKey]Row{}}
}

// IndexOf follows a topic from the first look on.
func (d *Tables) IndexOf(ctx context.Context, at **Index, topic string,
	listOf func(key string) (list, name string)) (*Index, error) {
	release, err := d.cluster.Single(ctx, "table/"+topic)
	if err != nil {
		return nil, err
	}
	defer release()
	if *at == nil {
		n, err := d.cluster.PartitionsOf(ctx, topic)
		if err != nil {
			return nil, err
		}
		x := NewIndex(listOf)
		x.Table = d.Begin(&Table{Changed: x.Note, Row: x.OffsetOf, bare: true}, topic, cluster.Span(n))
		*at = x
	}
	return *at, (*at).Sync(ctx)
}

// Whole refuses to look for single rows when there are too many to know all.
func (x *Index) Whole() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		return nil
	}
	return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("there are more than %d of them", maxRows),
		"delete the group, or trim "+x.Topic+" with kafka-delete-records.sh and open again", nil)
}

// Note takes in a record. The end of a row under an older key of the same name is not the end of the newer.
func (x *Index) Note(r *kgo.Record) {
	if r.Attrs.IsControl() || record.IsLate(r) {
		return
	}
	list, name := x.listOf(string(r.Key))
	key, suffix := Hashed(name), SuffixOf(string(r.Key), name)
	x.mu.Lock()
	defer x.mu.Unlock()
	old, ok := x.at[key]
	if r.Value == nil && (!ok || old.Suffix != suffix) {
		return
	}
	if ok {
		x.counts[old.list]--
		delete(x.at, key)
	}
	if r.Value == nil {
		return
	}
	if len(x.at) >= maxRows {
		x.over = true
		return
	}
	i := slices.Index(x.lists, list)
	if i < 0 {
		i = len(x.lists)
		x.lists, x.counts = append(x.lists, strings.Clone(list)), append(x.counts, 0)
	}
	x.counts[i]++
	x.at[key] = Row{r.Offset, uint32(r.Timestamp.Unix()), uint16(r.Partition), uint16(i), suffix}
}

// Count is how many rows a listing has.
func (x *Index) Count(list string) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.Index(x.lists, list); i >= 0 {
		return x.counts[i]
	}
	return 0
}

// Find returns the row of a name.
func (x *Index) Find(name string) (Row, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.at[Hashed(name)]
	return at, ok
}

// OffsetOf is where the row of a name is, or -1.
func (x *Index) OffsetOf(name string) int64 {
	if at, ok := x.Find(name); ok {
		return at.Offset
	}
	return -1
}

// Current reports whether a record is the newest of its name.
func (x *Index) Current(r *kgo.Record) bool {
	_, name := x.listOf(string(r.Key))
	if l, ok := x.Find(name); ok {
		return l.Offset == r.Offset && int32(l.Partition) == r.Partition
	}
	return x.Whole() != nil
}

func (l Row) compare(o Row) int {
	return cmp.Or(cmp.Compare(l.second, o.second), cmp.Compare(l.Partition, o.Partition), cmp.Compare(l.Offset, o.Offset))
}

// cursor names a place in a listing.
func (l Row) cursor() string {
	return record.SortKey(int64(l.second), driver.Ref{Partition: int32(l.Partition), Pos: uint64(l.Offset)})
}

// readCursor is the place that a cursor names, which is one of ours; see driver.Query. That of none is before all.
func readCursor(cursor string) Row {
	l := Row{Offset: -1}
	_, _ = fmt.Sscanf(cursor, "%d.%d.%d", &l.second, &l.Partition, &l.Offset)
	return l
}

// page returns the oldest rows of a listing behind a place, at most n and one.
func (x *Index) page(list string, behind Row, n int) []Row {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.Index(x.lists, list)
	var out []Row
	for _, l := range x.at {
		if int(l.list) != i || l.compare(behind) <= 0 {
			continue
		}
		if out = append(out, l); len(out) >= 2*n+100 { // keep the oldest
			slices.SortFunc(out, Row.compare)
			out = out[:n+1]
		}
	}
	slices.SortFunc(out, Row.compare)
	return out[:min(len(out), n+1)]
}

// Browse reads a page of a listing, as entries. Rows that are replaced or deleted meanwhile are left out.
func (x *Index) Browse(ctx context.Context, list string, q driver.Query,
	read func(*kgo.Record) (driver.Entry, bool)) (page driver.Page, err error) {
	if err := x.Whole(); err != nil {
		return page, err
	}
	n := min(q.Limit, q.MaxScan)
	found := x.page(list, readCursor(q.Cursor), n)
	if len(found) > n {
		found = found[:n]
		page.Next = found[n-1].cursor()
	}
	page.Scanned = len(found)
	page.Entries, err = x.Read(ctx, found, read)
	return page, err
}

// Read turns rows into entries, in the same order.
func (x *Index) Read(ctx context.Context, rows []Row, read func(*kgo.Record) (driver.Entry, bool)) (out []driver.Entry,
	err error) {
	wanted, entries := map[int32][]int64{}, map[driver.Ref]driver.Entry{}
	for _, l := range rows {
		wanted[int32(l.Partition)] = append(wanted[int32(l.Partition)], l.Offset)
	}
	if err := x.d.cluster.ReadAt(ctx, x.Topic, wanted, func(r *kgo.Record) {
		if e, ok := read(r); ok && r.Value != nil {
			entries[record.RefOf(r)] = e
		}
	}); err != nil {
		return nil, err
	}
	for _, l := range rows {
		if e, ok := entries[record.RefAt(int32(l.Partition), l.Offset)]; ok {
			out = append(out, e)
		}
	}
	return out, nil
}
