// Package victim is what one process under torture sees of its broker: a driver that writes the history of every lease,
// and that can be harmed from outside, as a machine or a network would harm it.
package victim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Harm is what is wrong with one process at the moment. Its methods may be called at any time.
type Harm struct {
	mu      sync.Mutex
	change  chan struct{} // closed and replaced whenever something changes
	dead    bool
	buried  bool
	stopped bool
	away    bool // requests do not arrive
	mute    bool // replies do not arrive
	unheard bool // extensions do not arrive
	shift   time.Duration

	waits map[int]context.CancelFunc // of calls that wait in the broker
	calls int
}

// NewHarm returns a Harm with nothing wrong.
func NewHarm() *Harm { return &Harm{change: make(chan struct{}), waits: map[int]context.CancelFunc{}} }

// wait returns a context for a call that may wait in the broker. It ends when the process dies or its connection is
// cut: the broker then hands nothing to a caller that is not there any more.
func (h *Harm) wait(ctx context.Context) (waiting context.Context, done func()) {
	waiting, cancel := context.WithCancel(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead || h.away {
		cancel()
	}
	h.calls++
	n := h.calls
	h.waits[n] = cancel
	return waiting, func() {
		cancel()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waits, n)
	}
}

func (h *Harm) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	if h.dead || h.away {
		for _, cancel := range h.waits {
			cancel()
		}
	}
	close(h.change)
	h.change = make(chan struct{})
}

// Kill ends the process as kill -9 would, as far as the broker can tell: nothing that it asked for returns, and nothing
// that it asks from now on is sent.
func (h *Harm) Kill() { h.set(func() { h.dead = true }) }

// Bury lets the goroutines of a killed process end. What they ask for fails.
func (h *Harm) Bury() { h.set(func() { h.dead, h.buried = true, true }) }

// Begin starts a fault by the name of its action. It reports whether there is such a fault.
func (h *Harm) Begin(action, value string) (bool, error) { return h.apply(action, value, true) }

// End ends it.
func (h *Harm) End(action string) (bool, error) { return h.apply(action, "0s", false) }

func (h *Harm) apply(action, value string, on bool) (known bool, err error) {
	switch action {
	case "stop":
		h.set(func() { h.stopped = on })
	case "cut":
		h.set(func() { h.away = on })
	case "lose-replies":
		h.set(func() { h.mute = on })
	case "lose-renewals":
		h.set(func() { h.unheard = on })
	case "clock":
		d, err := time.ParseDuration(value)
		if err != nil {
			return true, fmt.Errorf("clock with %q: it takes a duration such as +1h or -1h", value)
		}
		h.set(func() { h.shift = d })
	default:
		return false, nil
	}
	return true, nil
}

// condition is a copy of what is wrong, taken when a call may go on.
type condition struct {
	buried, away, mute, unheard bool
	shift                       time.Duration
}

// Pass waits while the process is stopped, or dead and not yet buried. It is called wherever such a process would hang.
func (h *Harm) Pass() { _ = h.pass() }

func (h *Harm) pass() condition {
	h.mu.Lock()
	for (h.dead || h.stopped) && !h.buried {
		change := h.change
		h.mu.Unlock()
		<-change
		h.mu.Lock()
	}
	defer h.mu.Unlock()
	return condition{h.buried, h.away, h.mute, h.unheard, h.shift}
}

var (
	errBuried = driver.NewError(driver.ErrClosed, "the process is dead", "nothing: a test killed it", nil)
	errAway   = driver.NewError(driver.ErrNotApplied, "the broker is not reached", "wait: a test cut the connection", nil)
	errMute   = driver.NewError(driver.ErrUnknown, "the reply was lost", "try again: a test loses replies", nil)
)
