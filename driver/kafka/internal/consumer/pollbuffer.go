package consumer

import "bytes"

// pollBuffer is the memory of what one poll brought: bodies are parts of it, as long as most of them are needed. When
// few are left for a while they are copied, so that a slow message keeps no more than four times its size from being
// free. Mostly the others are settled before that, and nothing is copied.
type pollBuffer struct {
	items       []*Item
	bytes, left int
	waning      bool // few are left
}

// pollBuffers are those that few are left of, since the last call and since the one before.
type pollBuffers struct{ waning, waned []*pollBuffer }

// share notes that the body of an item is part of the buffer.
func (l *pollBuffer) share(it *Item) {
	if l == nil || it.size == 0 {
		return
	}
	it.buffer = l
	l.items = append(l.items, it)
	l.bytes += it.size
	l.left += it.size
}

// release is told that an item has left the window: its body is not needed any more, or for long.
func (ls *pollBuffers) release(it *Item) {
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
	} else if !l.waning && 4*l.left <= l.bytes {
		l.waning = true
		ls.waning = append(ls.waning, l)
	}
}

// copyRests copies what is left of buffers that were waning at the last call already.
func (ls *pollBuffers) copyRests() {
	waned := ls.waned
	ls.waned, ls.waning = ls.waning, nil
	for _, l := range waned {
		if l.waning = l.left > 0 && 4*l.left <= l.bytes; !l.waning { // all are done, or there came more of the poll
			continue
		}
		if l.copy(); l.left > 0 {
			ls.waning = append(ls.waning, l)
		}
	}
}

func (l *pollBuffer) copy() {
	kept := l.items[:0]
	l.bytes, l.left = 0, 0
	for _, x := range l.items {
		switch {
		case x.buffer != l:
		case x.state == ready || x.state == waiting || x.claimed != nil:
			x.buffer = nil
			x.own()
		default: // somebody reads it without a lock, and will soon be done
			kept = append(kept, x)
			l.bytes, l.left = l.bytes+x.size, l.left+x.size
		}
	}
	clear(l.items[len(kept):])
	l.items = kept
}

// own gives an item a copy of its body.
func (it *Item) own() {
	m := *it.Msg
	m.Body = bytes.Clone(m.Body)
	it.Msg = &m
}

// copyRests is done with every tick of commits.
func (q *queue) copyRests() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.buffers.copyRests()
}
