package kafka

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
)

// index says where the rows of a compacted topic are, not what is in them. About 80 bytes each.
type index struct {
	*table
	// listOf says to which listing a key belongs: "" for none. Keys of the same name are one row, whatever follows the name.
	listOf func(key string) (list, name string)

	mu     sync.Mutex
	at     map[rowKey]row
	lists  []string // by row.list
	counts []int64
	over   bool // there are more than maxRows
}

// rowKey is the hash of the name of a row.
type rowKey [16]byte

// row is where a row is, and when it was stored.
type row struct {
	offset    int64
	second    uint32
	partition uint16
	list      uint16
	suffix    uint32 // what follows the name in its key, hashed
}

const maxRows = 5_000_000

func hashed(name string) rowKey {
	sum := sha256.Sum256([]byte(name))
	return rowKey(sum[:16])
}

func suffixOf(key, name string) uint32 { return crc32.ChecksumIEEE([]byte(key[len(name):])) }

// newIndex is empty.
func newIndex(listOf func(key string) (list, name string)) *index {
	return &index{listOf: listOf, at: map[rowKey]row{}}
}

// indexOf follows a topic from the first look on.
func (d *Driver) indexOf(ctx context.Context, at **index, topic string, listOf func(key string) (list, name string)) (*index, error) {
	release, err := d.single(ctx, "table/"+topic)
	if err != nil {
		return nil, err
	}
	defer release()
	if *at == nil {
		n, err := d.partitionsOf(ctx, topic)
		if err != nil {
			return nil, err
		}
		x := newIndex(listOf)
		x.table = d.begin(&table{changed: x.note, row: x.offsetOf, bare: true}, topic, span(n))
		*at = x
	}
	return *at, (*at).sync(ctx)
}

// whole refuses to look for single rows when there are too many to know all.
func (x *index) whole() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		return nil
	}
	return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("there are more than %d of them", maxRows), "delete the group, or trim "+x.topic+" with kafka-delete-records.sh and open again", nil)
}

// note takes in a record. The end of a row under an older key of the same name is not the end of the newer.
func (x *index) note(r *kgo.Record) {
	if r.Attrs.IsControl() || isLate(r) {
		return
	}
	list, name := x.listOf(string(r.Key))
	key, suffix := hashed(name), suffixOf(string(r.Key), name)
	x.mu.Lock()
	defer x.mu.Unlock()
	old, ok := x.at[key]
	if r.Value == nil && (!ok || old.suffix != suffix) {
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
	x.at[key] = row{r.Offset, uint32(r.Timestamp.Unix()), uint16(r.Partition), uint16(i), suffix}
}

// count is how many rows a listing has.
func (x *index) count(list string) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.Index(x.lists, list); i >= 0 {
		return x.counts[i]
	}
	return 0
}

// find returns the row of a name.
func (x *index) find(name string) (row, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	at, ok := x.at[hashed(name)]
	return at, ok
}

// offsetOf is where the row of a name is, or -1.
func (x *index) offsetOf(name string) int64 {
	if at, ok := x.find(name); ok {
		return at.offset
	}
	return -1
}

// current reports whether a record is the newest of its name.
func (x *index) current(r *kgo.Record) bool {
	_, name := x.listOf(string(r.Key))
	x.mu.Lock()
	defer x.mu.Unlock()
	l, ok := x.at[hashed(name)]
	return ok && l.offset == r.Offset && int32(l.partition) == r.Partition || !ok && x.over
}

func (l row) compare(o row) int {
	return cmp.Or(cmp.Compare(l.second, o.second), cmp.Compare(l.partition, o.partition), cmp.Compare(l.offset, o.offset))
}

// cursor names a place in a listing.
func (l row) cursor() string {
	return sortKey(int64(l.second), driver.Ref{Partition: int32(l.partition), Pos: uint64(l.offset)})
}

// readCursor is the place that a cursor names.
func readCursor(cursor string) (l row, err error) {
	if cursor == "" {
		return row{offset: -1}, nil // before all
	}
	var sub int
	_, err = fmt.Sscanf(cursor, "%d.%d.%d.%d", &l.second, &l.partition, &l.offset, &sub)
	if err != nil {
		return l, driver.NewError(driver.ErrInvalid, "the cursor is not of this driver", "use the cursor that an earlier page ended with, or none", err)
	}
	return l, nil
}

// page returns the oldest rows of a listing behind a place, at most n and one.
func (x *index) page(list string, behind row, n int) []row {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.Index(x.lists, list)
	var out []row
	for _, l := range x.at {
		if int(l.list) != i || l.compare(behind) <= 0 {
			continue
		}
		if out = append(out, l); len(out) >= 2*n+100 { // keep the oldest
			slices.SortFunc(out, row.compare)
			out = out[:n+1]
		}
	}
	slices.SortFunc(out, row.compare)
	return out[:min(len(out), n+1)]
}

// browse reads a page of a listing, as entries. Rows that are replaced or deleted meanwhile are left out.
func (x *index) browse(ctx context.Context, list string, q driver.Query, read func(*kgo.Record) (driver.Entry, bool)) (page driver.Page, err error) {
	if err := x.whole(); err != nil {
		return page, err
	}
	behind, err := readCursor(q.Cursor)
	if err != nil {
		return page, err
	}
	n := min(q.Limit, q.MaxScan)
	found := x.page(list, behind, n)
	if len(found) > n {
		found = found[:n]
		page.Next = found[n-1].cursor()
	}
	page.Scanned = len(found)
	page.Entries, err = x.read(ctx, found, read)
	return page, err
}

// topicOffset is a place in a topic.
type topicOffset struct {
	partition int32
	offset    int64
}

// read turns rows into entries, in the same order.
func (x *index) read(ctx context.Context, rows []row, read func(*kgo.Record) (driver.Entry, bool)) (out []driver.Entry, err error) {
	wanted, entries := map[int32][]int64{}, map[topicOffset]driver.Entry{}
	for _, l := range rows {
		wanted[int32(l.partition)] = append(wanted[int32(l.partition)], l.offset)
	}
	if err := x.d.readAt(ctx, x.topic, wanted, func(r *kgo.Record) {
		if e, ok := read(r); ok && r.Value != nil {
			entries[topicOffset{r.Partition, r.Offset}] = e
		}
	}); err != nil {
		return nil, err
	}
	for _, l := range rows {
		if e, ok := entries[topicOffset{int32(l.partition), l.offset}]; ok {
			out = append(out, e)
		}
	}
	return out, nil
}
