package cluster_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// A lock that was replicated survives the loss of the primary: it goes on, or is lost and taken again under a larger
// epoch. Never are there two.
func TestLockAndFailover(t *testing.T) {
	t.Parallel()
	set := redistest.Sentinel(t, redistest.Options{})
	b := opened(t, set.URL())
	o := cluster.LockOptions{TTL: 20 * time.Second, Level: driver.Replicated(1)}
	l, err := cluster.Acquire(t.Context(), b, "report", o)
	if err != nil {
		t.Fatal(err)
	}
	old, err := set.Primary()
	if err != nil {
		t.Fatal(err)
	}
	old.Kill()
	if _, err := set.NextPrimary(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	var last error
	await(t, func() bool { // until the new primary judges
		last = fenced(b, cluster.DefaultBucket, l.Fence())
		return last == nil || errors.Is(last, ferry.ErrLeaseLost)
	})
	if last == nil {
		if _, err := cluster.TryAcquire(t.Context(), b, "report", cluster.LockOptions{}); !errors.Is(err, ferry.ErrConflict) {
			t.Errorf("another takes a lock that is held: %v", err)
		}
	}
	_ = l.Release(context.Background())
	next, err := cluster.Acquire(t.Context(), b, "report", cluster.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if next.Epoch() <= l.Epoch() {
		t.Errorf("epoch %d after %d", next.Epoch(), l.Epoch())
	}
	if err := fenced(b, cluster.DefaultBucket, l.Fence()); !errors.Is(err, ferry.ErrLeaseLost) {
		t.Errorf("a write under the old epoch: %v", err)
	}
	release(t, next)
}
