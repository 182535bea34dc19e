package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// mapStore is a store in memory: everything is written, and safe, at once.
type mapStore struct {
	mu      sync.Mutex
	records map[string][]byte
}

type mapBatch struct{ changes []func(map[string][]byte) }

type writtenRound struct{}

var (
	_ Store = (*mapStore)(nil)
	_ Batch = (*mapBatch)(nil)
	_ Round = writtenRound{}
)

func newMapStore() *mapStore { return &mapStore{records: map[string][]byte{}} }

// storeOptions are those of an engine over a store.
func storeOptions(s *mapStore, window int) Options {
	o := testOptions()
	o.Store, o.Window, o.CacheBytes, o.SnapshotFrom = s, window, 64, 1
	return o
}

func (s *mapStore) Batch() Batch { return &mapBatch{} }

func (s *mapStore) Append(b Batch, _ bool) Round {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b != nil {
		for _, change := range b.(*mapBatch).changes {
			change(s.records)
		}
	}
	return writtenRound{}
}

func (s *mapStore) Read(keys [][]byte, use func(i int, value []byte)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range keys {
		use(i, s.records[string(k)])
	}
	return nil
}

func (s *mapStore) Scan(from, to []byte, use func(key, value []byte) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(s.records)) {
		if k < string(from) || k >= string(to) {
			continue
		}
		if err := use([]byte(k), slices.Clone(s.records[k])); err != nil {
			return err
		}
	}
	return nil
}

func (s *mapStore) Room() error              { return nil }
func (s *mapStore) Stopped() <-chan struct{} { return nil }
func (s *mapStore) Failure() error           { return nil }

func (b *mapBatch) Set(key, head, rest []byte) {
	k, v := string(key), slices.Concat(head, rest)
	b.changes = append(b.changes, func(m map[string][]byte) { m[k] = v })
}

func (b *mapBatch) SetLatest(key, value []byte) { b.Set(key, value, nil) }

func (b *mapBatch) Delete(key []byte) {
	k := string(key)
	b.changes = append(b.changes, func(m map[string][]byte) { delete(m, k) })
}

func (b *mapBatch) DeleteRange(from, to []byte) {
	f, u := string(from), string(to)
	b.changes = append(b.changes, func(m map[string][]byte) {
		maps.DeleteFunc(m, func(k string, _ []byte) bool { return k >= f && k < u })
	})
}

func (writtenRound) Wait(context.Context, bool) error { return nil }
func (writtenRound) Readable() bool                   { return true }
func (writtenRound) Synced() bool                     { return true }
