package redistest

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

var errLoads = errors.New("it loads")

// TestProgressGivesTime: a server that loads for longer than readyTimeout is waited for as long as it gets on.
func TestProgressGivesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		progress := func() string { return strconv.Itoa(int(time.Since(begin) / (readyTimeout / 2))) }
		err := untilStalled(t.Context(), readyTimeout, progress, func() error {
			if time.Since(begin) < 10*readyTimeout {
				return errLoads
			}
			return nil
		})
		if err != nil {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

// TestStallEndsTheWait: one that gets on no more is given up, with what it said last.
func TestStallEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		progress := func() string { return strconv.Itoa(int(min(time.Since(begin), time.Minute))) }
		err := untilStalled(t.Context(), readyTimeout, progress, func() error { return errLoads })
		if took := time.Since(begin); !errors.Is(err, errStalled) || !errors.Is(err, errLoads) ||
			took < time.Minute+readyTimeout || took > time.Minute+readyTimeout+time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
