package disk

import (
	"sync"
	"sync/atomic"

	"github.com/ferrymq/ferry/driver"
)

// readers are the calls that use Pebble beside the committer. Closing Pebble below them would panic: it waits for them.
type readers struct {
	mu      sync.Mutex
	inside  sync.WaitGroup
	closing atomic.Bool
}

// enter lets a call use Pebble until it leaves, unless the store is closed.
func (r *readers) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refused(); err != nil {
		return err
	}
	r.inside.Add(1)
	return nil
}

func (r *readers) leave() { r.inside.Done() }

// refused says that the store is closed, or nil. Who is inside for long asks now and then.
func (r *readers) refused() error {
	if r.closing.Load() {
		return errClosed()
	}
	return nil
}

// shut lets nobody in any more, and waits for those inside. It is called once.
func (r *readers) shut() {
	r.mu.Lock()
	r.closing.Store(true)
	r.mu.Unlock()
	r.inside.Wait()
}

func errClosed() error {
	return driver.NewError(driver.ErrClosed, "the store is closed", "open it again", nil)
}
