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

// items are those of a partition by key.
type items struct {
	byOffset map[int64]*Item
	byLogKey map[string]*Item // without an offset
}

func newItems() items { return items{byOffset: map[int64]*Item{}, byLogKey: map[string]*Item{}} }

func (s *items) of(k itemKey) *Item {
	if k.offset < 0 {
		return s.byLogKey[k.logKey]
	}
	return s.byOffset[k.offset]
}

func (s *items) put(it *Item) {
	if it.offset < 0 {
		s.byLogKey[it.logKey] = it
	} else {
		s.byOffset[it.offset] = it
	}
}

func (s *items) drop(it *Item) {
	if it.offset < 0 {
		delete(s.byLogKey, it.logKey)
	} else {
		delete(s.byOffset, it.offset)
	}
}

// all are the items in no order. Whoever looks may drop some.
func (s *items) all() iter.Seq[*Item] {
	return func(yield func(*Item) bool) {
		for _, it := range s.byOffset {
			if !yield(it) {
				return
			}
		}
		for _, it := range s.byLogKey {
			if !yield(it) {
				return
			}
		}
	}
}
