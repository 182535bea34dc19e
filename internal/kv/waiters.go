package kv

import (
	"context"
	"sync"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// look is how often whoever waits looks by itself: quiet writes wake nobody, and a wake-up may be lost.
const look = time.Second

// Again is when a value that somebody waits for may be another without a write: when it expires.
func Again(v driver.Value) time.Duration {
	if v.Left > 0 {
		return v.Left
	}
	return time.Hour
}

// Waiters are those who wait for a value, or for any of a bucket. They are told that there may be news, and look.
type Waiters struct {
	mu      sync.Mutex
	waiting map[place]*waiting
	ended   chan struct{}
}

// place is a value somebody waits for; without a name, any of the bucket.
type place struct{ bucket, name string }

// waiting is those who wait for one place.
type waiting struct {
	news chan struct{} // closed when there may be some
	n    int
}

// NewWaiters returns one that nobody waits in.
func NewWaiters() *Waiters {
	return &Waiters{waiting: map[place]*waiting{}, ended: make(chan struct{})}
}

// Wake tells those who wait for a value, or for any of its bucket. Without a name, everybody in the bucket.
func (w *Waiters) Wake(bucket, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name == "" {
		for at := range w.waiting {
			if at.bucket == bucket {
				w.wake(at)
			}
		}
		return
	}
	w.wake(place{bucket, name})
	w.wake(place{bucket, ""})
}

func (w *Waiters) wake(at place) {
	if x, ok := w.waiting[at]; ok {
		close(x.news)
		delete(w.waiting, at)
	}
}

// End ends all waiting with ErrClosed.
func (w *Waiters) End() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.Ended() {
		close(w.ended)
	}
}

// Ended reports whether End was called.
func (w *Waiters) Ended() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// ErrClosed is the error of calls after the end.
func ErrClosed() error {
	return driver.NewError(driver.ErrClosed, "the driver is closed", "open it again", nil)
}

// Await calls read until it is done: at once, when there may be news, once a second, and when read wants to look again.
// Who is told after read has begun looks again.
func (w *Waiters) Await(ctx context.Context, bucket, name string,
	read func() (done bool, again time.Duration, err error)) error {
	at := place{bucket, name}
	for {
		if w.Ended() {
			return ErrClosed()
		}
		x := w.join(at)
		done, again, err := read()
		if err == nil && !done {
			err = w.pause(ctx, x, min(look, again))
		}
		w.leave(at, x)
		if done || err != nil {
			return err
		}
	}
}

func (w *Waiters) join(at place) *waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.waiting[at]
	if x == nil {
		x = &waiting{news: make(chan struct{})}
		w.waiting[at] = x
	}
	x.n++
	return x
}

func (w *Waiters) leave(at place, x *waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x.n--; x.n == 0 && w.waiting[at] == x {
		delete(w.waiting, at)
	}
}

// pause waits for news, or for so long.
func (w *Waiters) pause(ctx context.Context, x *waiting, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-x.news:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ended:
		return ErrClosed()
	}
	return nil
}
