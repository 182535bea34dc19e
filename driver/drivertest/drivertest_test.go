package drivertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryHarness judges the reference driver in virtual time.
func memoryHarness() Harness {
	d, err := memory.New(context.Background(), memory.Options{})
	if err != nil {
		panic(err) // the options are the defaults
	}
	defer func() { _ = d.Close(context.Background()) }()
	return Harness{
		Open: func(t testing.TB) driver.Driver { return newMemory(t, memory.Options{MaxBody: 64 << 10}) },
		Want: withMaxBody(d.Capabilities(), 64<<10),
		PlantRaw: func(ctx context.Context, d driver.Driver, topic string, raw []byte) error {
			return unwrapped(d).(*memory.Driver).StoreRaw(ctx, topic, raw)
		},
		Virtual: true,
		Steps:   5_000,
	}
}

func withMaxBody(c driver.Capabilities, n int) driver.Capabilities {
	c.MaxBody = n
	return c
}

// lasting is a memory driver that plays a backend that survives its clients: Close ends the subscriptions only.
type lasting struct {
	driver.Driver
	subs *[]driver.Subscription
}

func (l lasting) Unwrap() driver.Driver { return l.Driver }

func (l lasting) Subscribe(ctx context.Context, o driver.SubscribeOptions) (driver.Subscription, error) {
	s, err := l.Driver.Subscribe(ctx, o)
	if err == nil {
		*l.subs = append(*l.subs, s)
	}
	return s, err
}

// A case that skips is shown as skipped in virtual time too.
func TestSkippedIsShown(t *testing.T) {
	var shown *testing.T
	t.Run("skips", func(t *testing.T) {
		shown = t
		memoryHarness().resolved(t).judge(t, Case{Name: "skips", Run: func(t *T) { t.Skip("on purpose") }}, nil)
	})
	if !shown.Skipped() {
		t.Error("a case that skips counts as passed")
	}
}

// TestRestartCases checks the cases themselves, with a backend that outlives the driver.
func TestRestartCases(t *testing.T) {
	t.Parallel()
	h := memoryHarness()
	open := h.Open
	h.Open = func(t testing.TB) driver.Driver { return lasting{open(t), new([]driver.Subscription)} }
	h.Reopen = func(t testing.TB, d driver.Driver) driver.Driver {
		for _, s := range *d.(lasting).subs {
			if err := s.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		return lasting{unwrapped(d), new([]driver.Subscription)}
	}
	forgetful := h
	forgetful.Reopen = func(t testing.TB, d driver.Driver) driver.Driver {
		if err := unwrapped(d).Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		return h.Open(t)
	}
	for _, c := range Cases() {
		if !strings.HasPrefix(c.Name, "restart/") {
			continue
		}
		if complaints := Catch(t, h, c); len(complaints) > 0 {
			t.Errorf("case %q complains of a sound driver: %s", c.Name, complaints[0])
		}
		if len(Catch(t, forgetful, c)) == 0 {
			t.Errorf("case %q does not notice that everything is lost", c.Name)
		}
	}
}

// TestRealTime runs the suite with real waits, as a driver on a server does: the suite itself must not depend on
// virtual time. Cases that only wait longer are left out of short runs.
func TestRealTime(t *testing.T) {
	if testing.Short() {
		t.Skip("waits in real time")
	}
	t.Parallel()
	h := memoryHarness()
	h.Virtual, h.Steps, h.Late, h.Patience = false, 2_000, time.Second, 20*time.Second
	Run(t, h)
}

func BenchmarkMemory(b *testing.B) { Bench(b, memoryHarness()) }

// newMemory returns an empty broker in memory.
func newMemory(t testing.TB, o memory.Options) *memory.Driver {
	t.Helper()
	d, err := memory.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
