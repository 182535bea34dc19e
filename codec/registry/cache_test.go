package registry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/codec"
)

// lookups counts how often it is asked, takes a second, and answers what it is told to.
type lookups struct {
	n   int
	err error
}

func (l *lookups) load(ctx context.Context) (string, error) {
	l.n++
	select {
	case <-time.After(time.Second):
		return "answer", l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// A caller that gives up does not take those along that wait for its question: one of them asks again.
func TestCallerThatGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c cache[int, string]
		l := new(lookups)
		first, giveUp := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { _, err := c.get(first, 1, l.load); errs <- err }()
		synctest.Wait()
		go func() {
			v, err := c.get(t.Context(), 1, l.load)
			if v != "answer" {
				err = fmt.Errorf("got %q: %w", v, err)
			}
			errs <- err
		}()
		synctest.Wait()
		giveUp()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("the first: error %v", err)
		}
		if err := <-errs; err != nil || l.n != 2 {
			t.Errorf("the second: error %v after %d questions", err, l.n)
		}
	})
}

// One that waits for the question of another leaves when its own time is over.
func TestWaitingCallerHasItsOwnTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c cache[int, string]
		l := new(lookups)
		done := make(chan error)
		go func() { _, err := c.get(t.Context(), 1, l.load); done <- err }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.get(short, 1, l.load); !errors.Is(err, context.DeadlineExceeded) ||
			!errors.Is(err, codec.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
		if err := <-done; err != nil || l.n != 1 {
			t.Errorf("error %v after %d questions", err, l.n)
		}
	})
}

// Failures are told again for a while, then the question is asked again.
func TestFailuresAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	for err, keep := range map[error]time.Duration{codec.ErrUnavailable: keepUnavailable, ErrNotFound: keepRefused} {
		synctest.Test(t, func(t *testing.T) {
			var c cache[int, string]
			l := &lookups{err: err}
			for range 3 {
				if _, got := c.get(t.Context(), 1, l.load); !errors.Is(got, err) || l.n != 1 {
					t.Errorf("error %v after %d questions", got, l.n)
				}
			}
			time.Sleep(keep)
			l.err = nil
			if v, err := c.get(t.Context(), 1, l.load); v != "answer" || err != nil || l.n != 2 {
				t.Errorf("%q, error %v after %d questions", v, err, l.n)
			}
		})
	}
}

// Bodies may name as many ids as they like.
func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	var c cache[int, string]
	for id := range 3 * maxFailures {
		_, _ = c.get(t.Context(), id, func(context.Context) (string, error) { return "", ErrNotFound })
	}
	if len(c.failed) > maxFailures || len(c.calls) != 0 || len(c.known) != 0 {
		t.Errorf("%d failures, %d calls, %d known", len(c.failed), len(c.calls), len(c.known))
	}
}

// A panic leaves nobody waiting.
func TestPanicEndsTheCall(t *testing.T) {
	t.Parallel()
	var c cache[int, string]
	func() {
		defer func() { _ = recover() }()
		_, _ = c.get(t.Context(), 1, func(context.Context) (string, error) { panic("broken") })
	}()
	if v, err := c.get(t.Context(), 1,
		func(context.Context) (string, error) { return "answer", nil }); v != "answer" || err != nil {
		t.Errorf("%q, error %v", v, err)
	}
}
