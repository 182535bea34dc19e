package cluster_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/driver/memory"
	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what fails here is meant to
	goleak.VerifyTestMain(kafkatest.Main(redistest.Main(m)))
}

// virtual runs a test in virtual time, on a broker whose values can be made to fail.
func virtual(t *testing.T, f func(t *testing.T, b *ferry.Broker, faults *faults)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.New(context.Background(), memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		faults := new(faults)
		b, err := ferry.New(&faulty{inner, faults}, ferry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		f(t, b, faults)
	})
}

// pause waits until everything that can happen now has happened, then lets d pass.
func pause(d time.Duration) {
	synctest.Wait()
	time.Sleep(d)
	synctest.Wait()
}

// faults say what becomes of writes.
type faults struct {
	mu sync.Mutex
	// before fails a write without applying it, after fails its answer; nil lets it through.
	before, after func(w driver.Write) error
	calls         int
}

func (f *faults) set(before, after func(w driver.Write) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

func (f *faults) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// always fails every write.
func always(err error) func(driver.Write) error { return func(driver.Write) error { return err } }

// everySecond fails the first write, the third and so on.
func everySecond(err error) func(driver.Write) error {
	var n atomic.Int64
	return func(driver.Write) error {
		if n.Add(1)%2 == 1 {
			return err
		}
		return nil
	}
}

type faulty struct {
	driver.Driver
	faults *faults
}

func (d *faulty) KV() driver.KV { return &faultyKV{d.Driver.KV(), d.faults} }

type faultyKV struct {
	driver.KV
	faults *faults
}

func (k *faultyKV) Apply(ctx context.Context, bucket string, o driver.KVOptions,
	ws ...driver.Write) []driver.WriteResult {
	results := make([]driver.WriteResult, len(ws))
	for i, w := range ws {
		k.faults.mu.Lock()
		k.faults.calls++
		before, after := k.faults.before, k.faults.after
		k.faults.mu.Unlock()
		if before != nil {
			if results[i].Err = before(w); results[i].Err != nil {
				continue
			}
		}
		results[i] = k.KV.Apply(ctx, bucket, o, w)[0]
		if after != nil {
			if err := after(w); err != nil {
				results[i] = driver.WriteResult{Err: err}
			}
		}
	}
	return results
}
