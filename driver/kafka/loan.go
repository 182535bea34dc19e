package kafka

import "bytes"

// loan is the memory of what one poll brought: bodies are parts of it, as long as most of them are needed. When few are left they are copied, so that a slow
// message keeps no more than four times its size from being free.
type loan struct {
	items       []*item
	bytes, left int
}

// borrow notes that the body of an item is part of the loan.
func (l *loan) borrow(it *item) {
	if l == nil || it.size == 0 {
		return
	}
	it.loan = l
	l.items = append(l.items, it)
	l.bytes += it.size
	l.left += it.size
}

// repay is told that an item has left the window: its body is not needed any more, or for long.
func (it *item) repay() {
	l := it.loan
	if l == nil {
		return
	}
	it.loan = nil
	if it.state != gone {
		it.own()
	}
	if l.left -= it.size; 4*l.left > l.bytes {
		return
	}
	kept := l.items[:0]
	l.bytes, l.left = 0, 0
	for _, x := range l.items {
		switch {
		case x.loan != l:
		case x.state == ready || x.state == waiting || x.claimed != nil:
			x.loan = nil
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
func (it *item) own() {
	m := *it.msg
	m.Body = bytes.Clone(m.Body)
	it.msg = &m
}
