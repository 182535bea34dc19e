package rig

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/test/torture/checker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every fault, briefly, all at the same time: each against a broker of its own. `make torture` takes longer and more.
func TestMemorySmoke(t *testing.T) {
	t.Parallel()
	type verdict struct {
		report *checker.Report
		err    error
	}
	faults := Faults()
	verdicts := make([]verdict, len(faults))
	dirs := make([]string, len(faults))
	var running sync.WaitGroup
	for i, f := range faults {
		dirs[i] = t.TempDir()
		o := Options{
			Broker: "memory", Fault: f, Seed: 1, Load: 3 * time.Second, Rate: 120, Dir: dirs[i],
			RedeliverIn: 5 * time.Second, // fifteen runs share the machine
		}
		running.Go(func() {
			r, err := Run(t.Context(), o)
			verdicts[i] = verdict{r, err}
		})
	}
	running.Wait()
	for i, f := range faults {
		t.Run(f.Name, func(t *testing.T) {
			v := verdicts[i]
			if v.err != nil {
				t.Fatal(v.err)
			}
			t.Log(v.report.Verdict())
			if !v.report.OK {
				t.Errorf("a promise was broken; again with more load: make torture FAULT=%s SEED=1", f.Name)
			}
			if v.report.Published < 100 || v.report.Delivered < 2*v.report.Published*9/10 {
				t.Errorf("only %d published and %d delivered: that proves little", v.report.Published, v.report.Delivered)
			}
		})
	}
}

func TestFaultsDoHarm(t *testing.T) {
	t.Parallel()
	for fault, want := range map[string]func(*checker.Report) bool{
		"every 300ms kill consumer any":                                          func(r *checker.Report) bool { return r.Crashes >= 3 && r.Duplicates["lease_expired"] > 0 },
		"at 0s fail consumer all with 0.5 for 1h":                                func(r *checker.Report) bool { return r.Dead > 0 && r.Duplicates["retry"] > 0 },
		"at 200ms stop consumer 1 for 2s; at 300ms stop consumer 2 for 1900ms":   func(r *checker.Report) bool { return r.Faults == 2 && r.Stale > 0 },
		"every 300ms lose-replies consumer any for 150ms; at 1s flush":           nil, // no such action
		"every 200ms lose-replies producer all for 100ms":                        func(r *checker.Report) bool { return r.Faults > 5 },
		"at 0s slow consumer all with 1500ms for 1h; at 0s kill consumer 9":      nil, // no such consumer
		"at 100ms clock consumer all with tomorrow for 1s":                       nil, // no such offset
		"at 100ms cut consumer all for 300ms; at 200ms cut producer all for 1ms": func(r *checker.Report) bool { return r.Faults == 5 },
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			r, err := Run(t.Context(), Options{
				Broker: "memory", Fault: Fault{Name: "custom", Schedule: fault}, Seed: 2, Load: 1500 * time.Millisecond,
				Lease: time.Second, Rate: 300, Dir: t.TempDir(), RedeliverIn: 5 * time.Second,
			})
			if want == nil {
				if err == nil {
					t.Fatal("a schedule that cannot be carried out was")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !r.OK || !want(r) {
				t.Errorf("not what the fault should do:\n%s", r.Verdict())
			}
		})
	}
}

func TestUnknownBroker(t *testing.T) {
	t.Parallel()
	if _, err := Run(context.Background(), Options{Broker: "rabbit"}); err == nil {
		t.Fatal("a broker that does not exist was tortured")
	}
}
