package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"
)

// Habits are how the handlers of one process behave. The zero value does a little work and always succeeds.
type Habits struct {
	mu   sync.Mutex
	slow time.Duration // a few take this long
	fail float64       // the share that returns an error
	boom float64       // the share that panics
}

type outcome string

const (
	succeed outcome = "ok"
	fail    outcome = "failed"
	crash   outcome = "panicked"
)

// slowShare of the handlers is slow while some are to be.
const slowShare = 0.005

// Begin takes on a habit by the name of its action. It reports whether there is such a habit.
func (h *Habits) Begin(action, value string) (known bool, err error) { return h.apply(action, value) }

// End gives it up.
func (h *Habits) End(action string) (known bool, err error) { return h.apply(action, "0") }

func (h *Habits) apply(action, value string) (known bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch action {
	case "slow":
		h.slow, err = time.ParseDuration(value)
	case "fail":
		h.fail, err = share(value)
	case "panic":
		h.boom, err = share(value)
	default:
		return false, nil
	}
	if err != nil {
		err = fmt.Errorf("%s with %q: %w", action, value, err)
	}
	return true, err
}

func share(value string) (float64, error) {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || f < 0 || f > 1 {
		return 0, fmt.Errorf("it takes a share between 0 and 1")
	}
	return f, nil
}

func (h *Habits) choose(random *rand.Rand) (work time.Duration, o outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	work = time.Duration(random.IntN(2000)) * time.Microsecond
	if random.IntN(10) == 0 { // so that there is always something to lose
		work = time.Duration(random.IntN(100)) * time.Millisecond
	}
	if h.slow > 0 && random.Float64() < slowShare {
		work = h.slow
	}
	switch f := random.Float64(); {
	case f < h.fail:
		return work, fail
	case f < h.fail+h.boom:
		return work, crash
	}
	return work, succeed
}
