package disk

import "sync"

// failure is the first failure of a store. From then on everything is refused: after a failed write or sync nobody
// knows what is on the disk; only opening the store again, which reads it, can tell.
type failure struct {
	stopped chan struct{} // closed at the first one

	mu  sync.Mutex
	err error
}

// set notes a failure, and reports whether it is the first.
func (f *failure) set(err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return false
	}
	f.err = err
	close(f.stopped)
	return true
}

// get returns the first failure, or nil.
func (f *failure) get() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}
