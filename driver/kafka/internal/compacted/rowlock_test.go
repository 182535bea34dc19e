package compacted

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// testLocks are contests about rows that are at offset 7, if they are called "row".
type testLocks struct{ c *rowLocks }

// newTestLocks returns locks on nothing.
func newTestLocks() testLocks { return testLocks{newRowLocks(lockFor)} }

func (x testLocks) note(r *kgo.Record) {
	x.c.note(r, func(key string) int64 {
		if key == "row" {
			return 7
		}
		return 8
	})
}

// Lock reports whether a lock was first.
func (x testLocks) Lock(by, key string, at time.Time) bool {
	a := &Contender{by: by}
	x.c.enter(a)
	value, _ := json.Marshal(lockRecord{by, 7})
	x.note(&kgo.Record{Key: []byte(lockPrefix + key), Value: value, Timestamp: at})
	return a.won
}

// Release reports whether a lock held until now.
func (x testLocks) Release(by, key string) bool {
	x.note(&kgo.Record{Key: []byte(lockPrefix + key), Headers: []kgo.RecordHeader{{Key: byHeader, Value: []byte(by)}}})
	return x.c.mine[by].kept
}

// TestAbandonedLock: a process that died between its lock and what was to follow holds nobody up for good, and its end
// comes too late.
func TestAbandonedLock(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	x := newTestLocks()
	if !x.Lock("a", "row", at) || x.Lock("b", "row", at.Add(29*time.Second)) {
		t.Fatal("the first is not the only one")
	}
	if !x.Lock("c", "row", at.Add(30*time.Second)) {
		t.Fatal("an abandoned lock holds for ever")
	}
	if x.Release("a", "row") {
		t.Error("who was replaced hears that it did it")
	}
	if x.Lock("d", "row", at.Add(31*time.Second)) {
		t.Error("the end of a lock that was lost ended another one")
	}
	if !x.Release("c", "row") || !x.Lock("e", "row", at.Add(32*time.Second)) {
		t.Error("a lock that was released holds")
	}
	if x.Lock("f", "other", at) {
		t.Error("a row that is not where it was can be locked")
	}
}
