package kafka

import "iter"

// itemKey is what an item is known by: its offset in the main topic, or its key in the side log if it has none.
type itemKey struct {
	offset int64
	side   string
}

func (it *item) key() itemKey {
	if it.offset >= 0 {
		return itemKey{offset: it.offset}
	}
	return itemKey{-1, it.side}
}

// items are those of a partition by key.
type items struct {
	byOffset map[int64]*item
	bySide   map[string]*item // without an offset
}

func (s items) of(k itemKey) *item {
	if k.offset >= 0 {
		return s.byOffset[k.offset]
	}
	return s.bySide[k.side]
}

func (s items) put(it *item) {
	if it.offset >= 0 {
		s.byOffset[it.offset] = it
	} else {
		s.bySide[it.side] = it
	}
}

func (s items) drop(it *item) {
	if it.offset >= 0 {
		delete(s.byOffset, it.offset)
	} else {
		delete(s.bySide, it.side)
	}
}

// all are the items in no order.
func (s items) all() iter.Seq[*item] {
	return func(yield func(*item) bool) {
		for _, it := range s.byOffset {
			if !yield(it) {
				return
			}
		}
		for _, it := range s.bySide {
			if !yield(it) {
				return
			}
		}
	}
}
