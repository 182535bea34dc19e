package consumer

import "iter"

// items are those of a partition, by offset in the main topic, or by key in the retry log if they have none. Offsets
// that lie together share a block: they come and go in turn, so that the map is seldom asked. With a map of offsets a
// drain takes 5 % more of the processor (BenchmarkDrain).
type items struct {
	blocks   map[int64]*block // by offset / blockItems
	last     *block           // that was looked for
	byLogKey map[string]*Item // without an offset
}

const blockItems = 32

type block struct {
	number int64
	n      int // how many it has
	at     [blockItems]*Item
}

func newItems() items { return items{blocks: map[int64]*block{}, byLogKey: map[string]*Item{}} }

func (s *items) of(offset int64, logKey string) *Item {
	if offset < 0 {
		return s.byLogKey[logKey]
	}
	if b := s.block(offset); b != nil {
		return b.at[offset%blockItems]
	}
	return nil
}

// block is the one of an offset, or nil.
func (s *items) block(offset int64) *block {
	if b := s.last; b != nil && b.number == offset/blockItems {
		return b
	}
	b := s.blocks[offset/blockItems]
	if b != nil {
		s.last = b
	}
	return b
}

func (s *items) put(it *Item) {
	if it.offset < 0 {
		s.byLogKey[it.logKey] = it
		return
	}
	b := s.block(it.offset)
	if b == nil {
		b = &block{number: it.offset / blockItems}
		s.blocks[b.number], s.last = b, b
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
	b, at := s.block(it.offset), it.offset%blockItems
	if b == nil || b.at[at] == nil {
		return
	}
	b.at[at] = nil
	if b.n--; b.n == 0 {
		delete(s.blocks, b.number)
		s.last = nil
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
