package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/faulty"
)

// candidates run Lead with a journal of who led, and when.
type candidates struct {
	t     *testing.T
	b     *ferry.Broker
	begin time.Time
	all   sync.WaitGroup
	mu    sync.Mutex
	lines []string
}

func (c *candidates) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf("%v ", time.Since(c.begin))+fmt.Sprintf(format, args...))
}

// stand lets one more stand. The function ends it.
func (c *candidates) stand(name string) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	c.all.Go(func() {
		err := cluster.Lead(ctx, c.b, "alerts", func(ctx context.Context, _ *cluster.Lock) error {
			c.note("%s leads", name)
			<-ctx.Done()
			c.note("%s ends", name)
			return ctx.Err()
		})
		if err != nil {
			c.t.Errorf("Lead of %s: %v", name, err)
		}
	})
	return cancel
}

// One leads; after an orderly end the next does at once, and when a leader loses its lease it ends before the next
// begins.
func wantLed(t *testing.T, b *ferry.Broker, want bool) {
	t.Helper()
	if led, err := cluster.Led(context.Background(), b, "alerts"); err != nil || led != want {
		t.Errorf("led: %v, %v, not %v", led, err, want)
	}
}

func TestLead(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		c := &candidates{t: t, b: b, begin: time.Now()}
		endA := c.stand("a")
		pause(time.Second)
		endB := c.stand("b")
		pause(9 * time.Second)
		wantLed(t, b, true)
		endA()
		pause(10 * time.Second)
		// the renewals of b do not arrive
		f.Set(faulty.Write, func(_ context.Context, c faulty.Call, _ func()) error {
			if c.Write.Quiet {
				return ferry.ErrNotApplied
			}
			return nil
		})
		time.AfterFunc(6*time.Second, func() { f.Set(faulty.Write, nil) })
		pause(20 * time.Second)
		endB()
		c.all.Wait()
		wantLed(t, b, false)
		lines := slices.Clone(c.lines)
		if len(lines) != 6 || lines[0] != "0s a leads" || lines[1] != "10s a ends" || lines[2] != "10s b leads" ||
			lines[5] != "40s b ends" {
			t.Errorf("%q", lines)
		}
	})
}

// Work that takes its time to end leads until it has: longer than a lease here.
func TestLeadLastsUntilWorkHasReturned(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		c := &candidates{t: t, b: b, begin: time.Now()}
		ctx, end := context.WithCancel(context.Background())
		c.all.Go(func() {
			err := cluster.Lead(ctx, b, "alerts", func(ctx context.Context, l *cluster.Lock) error {
				<-ctx.Done()
				time.Sleep(2 * cluster.DefaultTTL)
				c.note("a has ended, and leads: %v", l.Err() == nil)
				return nil
			})
			if err != nil {
				t.Errorf("Lead of a: %v", err)
			}
		})
		pause(time.Second)
		endB := c.stand("b")
		pause(time.Second)
		end()
		pause(3 * cluster.DefaultTTL)
		endB()
		c.all.Wait()
		if want := []string{"12s a has ended, and leads: true", "12s b leads", "17s b ends"}; !slices.Equal(c.lines, want) {
			t.Errorf("%q, want %q", c.lines, want)
		}
	})
}

// What work returns by itself ends Lead; the lease is free at once.
func TestLeadEnds(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		broken := errors.New("broken")
		for _, want := range []error{nil, broken} {
			begin := time.Now()
			err := cluster.Lead(context.Background(), b, "alerts", func(context.Context, *cluster.Lock) error { return want })
			if !errors.Is(err, want) || time.Since(begin) != 0 {
				t.Errorf("Lead returned %v after %v, want %v", err, time.Since(begin), want)
			}
		}
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := cluster.Lead(ended, b, "alerts", func(context.Context, *cluster.Lock) error { return broken }); err != nil {
			t.Errorf("after its context: %v", err)
		}
	})
}

// The state of a duty is written under its lease, and a late leader cannot.
func TestLeaderIsFenced(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, _ *faulty.Driver) {
		kv, ctx := b.Driver().KV(), context.Background()
		write := func(l *cluster.Lock) error {
			return kv.Apply(ctx, cluster.LeadBucket("alerts"), driver.KVOptions{},
				driver.Write{Name: "state/disk", Fence: l.Fence()})[0].Err
		}
		var old *cluster.Lock
		for range 2 {
			err := cluster.Lead(ctx, b, "alerts", func(_ context.Context, l *cluster.Lock) error {
				if old != nil && !errors.Is(write(old), ferry.ErrLeaseLost) {
					t.Error("a late leader writes")
				}
				old = l
				return write(l)
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
}

func TestLeadIsRefused(t *testing.T) {
	virtual(t, func(t *testing.T, b *ferry.Broker, f *faulty.Driver) {
		work := func(context.Context, *cluster.Lock) error { return nil }
		for _, err := range []error{
			cluster.Lead(context.Background(), b, "no spaces", work),
			cluster.Lead(context.Background(), b, "alerts", nil),
			cluster.Lead(context.Background(), nil, "alerts", work),
		} {
			if !errors.Is(err, ferry.ErrInvalid) {
				t.Errorf("%v", err)
			}
		}
		for _, duty := range []string{"", "no spaces", strings.Repeat("x", 124)} {
			if err := cluster.Lead(context.Background(), b, duty, work); !errors.Is(err, ferry.ErrInvalid) ||
				!strings.Contains(err.Error(), "duty") {
				t.Errorf("duty %q: %v", duty, err)
			}
		}
		if err := cluster.Lead(context.Background(), b, strings.Repeat("x", 123), work); err != nil {
			t.Errorf("the longest name: %v", err)
		}
		f.Set(faulty.Write, faulty.Fail(ferry.ErrUnsupported))
		if err := cluster.Lead(context.Background(), b, "alerts", work); !errors.Is(err, ferry.ErrUnsupported) {
			t.Errorf("a broker without values: %v", err)
		}
	})
}
