package rig

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/test/torture/checker"
)

// TestMain removes the processes that tests have built.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if programs.dir != "" {
			_ = os.RemoveAll(programs.dir)
		}
		os.Exit(code)
	}))
}

var programs struct {
	once sync.Once
	dir  string
	err  error
}

// built returns the directory of the processes, which are built once for all tests.
func built(t *testing.T) string {
	t.Helper()
	programs.once.Do(func() { programs.dir, programs.err = Build(context.Background()) })
	if programs.err != nil {
		t.Fatal(programs.err)
	}
	return programs.dir
}

// inVirtualTime runs in a bubble: seconds of load take as long as the work in them, and a busy machine delays nothing.
func inVirtualTime(t *testing.T, o Options) (r *checker.Report, err error) {
	t.Helper()
	o.Dir, o.Broker = keptOnFailure(t), "memory"
	o.Clock = virtualClock()
	synctest.Test(t, func(t *testing.T) { r, err = Run(t.Context(), o) })
	return r, err
}

// keptOnFailure returns a directory that stays when the test fails.
func keptOnFailure(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ferry-torture-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("histories: %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// virtualClock returns one whose readings all differ: much happens at the same moment of virtual time.
func virtualClock() func() int64 {
	var mu sync.Mutex
	var last int64
	return func() int64 {
		mu.Lock()
		defer mu.Unlock()
		last = max(last+1, time.Now().UnixNano())
		return last
	}
}

// Every fault against the memory broker. `make torture` does it in real time, longer, and with more load.
// FERRY_TORTURE_SEED chooses another seed than 1.
func TestMemorySmoke(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("FERRY_TORTURE_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatalf("FERRY_TORTURE_SEED: %v", err)
	}
	faults, _, err := FaultsFor("memory")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			r, err := inVirtualTime(t, Options{Fault: f, Seed: seed, Load: 4 * time.Second, Rate: 150})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Verdict())
			if !r.OK {
				t.Errorf("a promise was broken; again with more load: make torture FAULT=%s SEED=%d", f.Name, seed)
			}
			if r.Published < 200 || r.Delivered < 2*r.Published*8/10 {
				t.Errorf("only %d published and %d delivered: that proves little", r.Published, r.Delivered)
			}
		})
	}
}

func TestFaultsDoHarm(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]func(*checker.Report) bool{
		"every 300ms kill consumer any": func(
			r *checker.Report) bool {
			return r.Crashes >= 3 && r.Duplicates["lease_expired"] > 0
		},
		"every 300ms kill producer any": func(
			r *checker.Report) bool {
			return r.Crashes >= 3
		},
		"at 0s fail consumer all with 0.5 for 1h": func(
			r *checker.Report) bool {
			return r.Dead > 0 && r.Duplicates["retry"] > 0
		},
		"at 200ms stop consumer 1 for 2s; at 300ms stop consumer 2 for 1900ms": func(
			r *checker.Report) bool {
			return r.Faults == 2
		},
		"every 200ms lose-replies producer all for 100ms": func(
			r *checker.Report) bool {
			return r.Faults > 5
		},
		"at 100ms cut consumer all for 300ms; at 200ms cut producer all for 1ms": func(
			r *checker.Report) bool {
			return r.Faults == 5
		},
		"at 1s flush":           nil, // no such action
		"at 0s kill consumer 9": nil, // no such consumer
		"at 100ms clock consumer all with tomorrow for 1s": nil, // no such offset
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r, err := inVirtualTime(t, Options{
				Fault: Fault{Name: "custom", Schedule: fault}, Seed: 2, Load: 1500 * time.Millisecond, Lease: time.Second,
				Rate: 300,
			})
			switch {
			case want == nil && err == nil:
				t.Fatal("a schedule that cannot be carried out was")
			case want == nil:
			case err != nil:
				t.Fatal(err)
			case !r.OK || !want(r):
				t.Errorf("not what the fault should do:\n%s", r.Verdict())
			}
		})
	}
}

// Real time once, so that the path of `make torture` is walked by every test run.
func TestRealTime(t *testing.T) {
	t.Parallel()
	o := Options{Broker: "memory", Fault: Fault{Name: "custom", Schedule: "at 300ms term consumer any"},
		Load: 500 * time.Millisecond, Dir: t.TempDir()}
	o.Lease = time.Minute // a busy machine must not take leases away
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || r.Published == 0 {
		t.Error(r.Verdict())
	}
}

func TestUnknownBroker(t *testing.T) {
	t.Parallel()
	if _, err := Run(context.Background(), Options{Broker: "rabbit"}); err == nil {
		t.Fatal("a broker that does not exist was tortured")
	}
}
