package consumer

import "iter"

// itemKey is what an item is known by: its offset in the main topic, or its key in the retry log if it has none.
type itemKey struct {
	offset int64
	logKey string
}

func (it *Item) key() itemKey {
	if it.offset >= 0 {
		return itemKey{offset: it.offset}
	}
	return itemKey{-1, it.logKey}
}

// items are those of a partition by key. Offsets that lie together share a block: they come and go in turn, so that the
// map is seldom asked. With a map of offsets a drain takes 5 % more of the processor (BenchmarkDrain).
type items struct {
	blocks   map[int64]*block // by offset / blockItems
	filled   *block           // of the last put
	emptied  *block           // of the last drop
	byLogKey map[string]*Item // without an offset
}

const blockItems = 32

type block struct {
	number int64
	n      int // how many it has
	at     [blockItems]*Item
}

func newItems() items { return items{blocks: map[int64]*block{}, byLogKey: map[string]*Item{}} }

func (s *items) of(k itemKey) *Item {
	if k.offset < 0 {
		return s.byLogKey[k.logKey]
	}
	if b := s.blocks[k.offset/blockItems]; b != nil {
		return b.at[k.offset%blockItems]
	}
	return nil
}

func (s *items) put(it *Item) {
	if it.offset < 0 {
		s.byLogKey[it.logKey] = it
		return
	}
	b := s.filled
	if number := it.offset / blockItems; b == nil || b.number != number {
		if b = s.blocks[number]; b == nil {
			b = &block{number: number}
			s.blocks[number] = b
		}
		s.filled = b
	}
	at := &b.at[it.offset%blockItems]
	if *at == nil {
		b.n++
	}
	*at = it
}

func (s *items) drop(it *Item) {
	if it.offset < 0 {
		delete(s.byLogKey, it.logKey)
		return
	}
	b := s.emptied
	if number := it.offset / blockItems; b == nil || b.number != number {
		if b = s.blocks[number]; b == nil {
			return
		}
		s.emptied = b
	}
	at := &b.at[it.offset%blockItems]
	if *at == nil {
		return
	}
	*at = nil
	if b.n--; b.n == 0 {
		delete(s.blocks, b.number)
		s.emptied = nil
		if s.filled == b {
			s.filled = nil
		}
	}
}

// all are the items in no order.
func (s *items) all() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for _, b := range s.blocks {
			for i := range b.at { // as it is by then: whoever looks may drop some
				if it := b.at[i]; it != nil && !yield(it) {
					return
				}
			}
		}
		for _, it := range s.byLogKey {
			if !yield(it) {
				return
			}
		}
	}
}
