package rawpebble

import (
	"slices"
	"sync"
)

// waiting are the ids of records that are committed and not taken, in order of their commits.
type waiting struct {
	mu      sync.Mutex
	more    *sync.Cond
	ids     []uint64
	taken   int // not deleted yet
	last    uint64
	stopped bool
}

func newWaiting() *waiting {
	w := &waiting{}
	w.more = sync.NewCond(&w.mu)
	return w
}

// reserve returns the first of n new ids.
func (w *waiting) reserve(n int) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := w.last + 1
	w.last += uint64(n)
	return first
}

// add makes n committed records known.
func (w *waiting) add(first uint64, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range n {
		w.ids = append(w.ids, first+uint64(i))
	}
	w.more.Signal()
}

// take waits for records and returns the ids of at most n, sorted. None: it was stopped.
func (w *waiting) take(n int) []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.ids) == 0 && !w.stopped {
		w.more.Wait()
	}
	if w.stopped {
		return nil
	}
	n = min(n, len(w.ids))
	ids := slices.Clone(w.ids[:n])
	if w.ids = w.ids[n:]; len(w.ids) > 0 {
		w.more.Signal()
	}
	w.taken += n
	slices.Sort(ids)
	return ids
}

func (w *waiting) deleted(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken -= n
}

func (w *waiting) left() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ids) + w.taken
}

func (w *waiting) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.more.Broadcast()
}
