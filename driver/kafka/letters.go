package kafka

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ferrymq/ferry/driver"
)

// letters is an index of the dead letters of a topic: where each is, not what it says. About 80 bytes each.
type letters struct {
	*table
	mu     sync.Mutex
	at     map[letterKey]letter
	groups []string // by letter.group
	counts []int64
	over   bool // there are more than maxLetters
}

// letterKey is the hash of a key of the dead topic.
type letterKey [16]byte

// letter is where a dead letter is, and when it was stored.
type letter struct {
	offset    int64
	second    uint32
	partition uint16
	group     uint16
}

const maxLetters = 5_000_000

func hashed(key string) letterKey {
	sum := sha256.Sum256([]byte(key))
	return letterKey(sum[:16])
}

// deadLetters follows the dead letters of a topic from the first look on.
func (d *Driver) deadLetters(ctx context.Context, t *topicState) (*letters, error) {
	name := d.deadTopic(t.name)
	release, err := d.single(ctx, "table/"+name)
	if err != nil {
		return nil, err
	}
	defer release()
	if t.dead == nil {
		n, err := d.partitionsOf(ctx, name)
		if err != nil {
			return nil, err
		}
		x := &letters{at: map[letterKey]letter{}}
		x.table = d.begin(&table{changed: x.note, bare: true}, name, span(n))
		t.dead = x
	}
	return t.dead, t.dead.sync(ctx)
}

// whole refuses to look for single letters when there are too many to know all.
func (x *letters) whole() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		return nil
	}
	return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("there are more than %d dead letters", maxLetters), "delete the group, or trim "+x.topic+" with kafka-delete-records.sh and open again", nil)
}

// note takes in a record of the dead topic.
func (x *letters) note(r *kgo.Record) {
	if r.Attrs.IsControl() {
		return
	}
	key := hashed(string(r.Key))
	x.mu.Lock()
	defer x.mu.Unlock()
	if old, ok := x.at[key]; ok {
		x.counts[old.group]--
		delete(x.at, key)
	}
	if r.Value == nil {
		return
	}
	if len(x.at) >= maxLetters {
		x.over = true
		return
	}
	name, _, _ := strings.Cut(string(r.Key), "/")
	group := slices.Index(x.groups, name)
	if group < 0 {
		group = len(x.groups)
		x.groups, x.counts = append(x.groups, strings.Clone(name)), append(x.counts, 0)
	}
	x.counts[group]++
	x.at[key] = letter{r.Offset, uint32(r.Timestamp.Unix()), uint16(r.Partition), uint16(group)}
}

// count is how many dead letters a group has.
func (x *letters) count(group string) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if i := slices.Index(x.groups, group); i >= 0 {
		return x.counts[i]
	}
	return 0
}

// current reports whether a record is the newest of its key.
func (x *letters) current(r *kgo.Record) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	l, ok := x.at[hashed(string(r.Key))]
	return ok && l.offset == r.Offset && int32(l.partition) == r.Partition || !ok && x.over
}

func (l letter) compare(o letter) int {
	return cmp.Or(cmp.Compare(l.second, o.second), cmp.Compare(l.partition, o.partition), cmp.Compare(l.offset, o.offset))
}

// cursor names a place in a listing.
func (l letter) cursor() string {
	return sortKey(int64(l.second), driver.Ref{Partition: int32(l.partition), Pos: uint64(l.offset)})
}

// readCursor is the place that a cursor names.
func readCursor(cursor string) (l letter, err error) {
	var sub int
	_, err = fmt.Sscanf(cursor, "%d.%d.%d.%d", &l.second, &l.partition, &l.offset, &sub)
	if err != nil {
		return l, driver.NewError(driver.ErrInvalid, "the cursor is not of this driver", "use Page.Next of the page before", err)
	}
	return l, nil
}

// page returns the oldest letters of a group behind a place, at most n and one.
func (x *letters) page(group string, behind letter, n int) []letter {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.Index(x.groups, group)
	var out []letter
	for _, l := range x.at {
		if int(l.group) != i || l.compare(behind) <= 0 {
			continue
		}
		if out = append(out, l); len(out) >= 2*n+100 { // keep the oldest
			slices.SortFunc(out, letter.compare)
			out = out[:n+1]
		}
	}
	slices.SortFunc(out, letter.compare)
	return out[:min(len(out), n+1)]
}
