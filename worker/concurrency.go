package worker

import (
	"fmt"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// SetConcurrency changes how many handlers run at once, over all topics. More start at once; where there are fewer,
// those that run finish. A handler with a Concurrency of its own keeps that as its bound. It can be called before Run.
// ErrConflict says that Scaling decides, ErrClosed that the worker stops.
func (w *Worker) SetConcurrency(n int) error {
	if w == nil {
		return errNilWorker
	}
	if n < 1 {
		return driver.NewError(ferry.ErrInvalid, fmt.Sprintf("a concurrency of %d", n),
			"use 1 or more; Quiet stops a worker from claiming", nil)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.options.Scaling.on() {
		return driver.NewError(ferry.ErrConflict, "the number of handlers follows the load",
			"change Scaling.Min and Scaling.Max, or leave Scaling out", nil)
	}
	w.options.Concurrency = n
	if w.engine == nil {
		return nil
	}
	return w.engine.setConcurrency(n)
}

func (e *engine) setConcurrency(n int) error {
	e.mu.Lock()
	if e.draining {
		e.mu.Unlock()
		return driver.NewError(ferry.ErrClosed, "the worker stops", "set it in the next one", nil)
	}
	for _, c := range e.consumers {
		c.setLimit(n)
		e.offer(c)
	}
	e.mu.Unlock()
	e.resize(n)
	return nil
}
