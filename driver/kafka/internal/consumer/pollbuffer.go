package consumer

import (
	"bytes"
	"slices"
)

// pollBuffer is the memory of what one poll brought: bodies are parts of it, as long as most of them are needed. When
// few are left for a while they are copied, so that a slow message keeps no more than four times its size from being
// free. Mostly the others are settled before that, and nothing is copied.
type pollBuffer struct {
	items       []*Item
	bytes, left int
	waning      bool // few were left at the last tick
	listed      bool // among the buffers of its queue
}

// share notes that the body of an item is part of what was polled last.
func (q *queue) share(it *Item) {
	l := q.buffer
	if l == nil || it.size == 0 {
		return
	}
	if !l.listed {
		l.listed = true
		q.buffers = append(q.buffers, l)
	}
	it.buffer = l
	l.items = append(l.items, it)
	l.bytes += it.size
	l.left += it.size
}

// unshare is told that an item has left the window: its body is not needed any more, or for long.
func (it *Item) unshare() {
	l := it.buffer
	if l == nil {
		return
	}
	it.buffer = nil
	if it.state != gone {
		it.own()
	}
	if l.left -= it.size; l.left == 0 {
		l.items, l.bytes = nil, 0 // items lead to the memory too
	}
}

// copyRests is done with every tick of commits: it copies what is left of buffers that were waning at the last one
// already.
func (q *queue) copyRests() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.buffers = slices.DeleteFunc(q.buffers, func(l *pollBuffer) bool {
		few := 4*l.left <= l.bytes
		if few && l.waning {
			l.copy()
		}
		l.waning, l.listed = few, l.left > 0
		return !l.listed
	})
}

func (l *pollBuffer) copy() {
	l.bytes, l.left = 0, 0
	l.items = slices.DeleteFunc(l.items, func(x *Item) bool {
		if x.buffer != l {
			return true
		}
		if x.state == ready || x.state == waiting || x.claimed != nil {
			x.buffer = nil
			x.own()
			return true
		}
		l.bytes, l.left = l.bytes+x.size, l.left+x.size // somebody reads it without a lock, and will soon be done
		return false
	})
}

// own gives an item a copy of its body.
func (it *Item) own() {
	m := *it.Msg
	m.Body = bytes.Clone(m.Body)
	it.Msg = &m
}
