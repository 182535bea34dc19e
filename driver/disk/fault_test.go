package disk

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/ferrymq/ferry/driver"
)

// TestFailedWriteStops lets the n-th change of a log fail, for every n: the caller gets an error, nothing is accepted
// afterwards, and opening the store again finds everything that was acknowledged.
func TestFailedWriteStops(t *testing.T) {
	t.Parallel()
	failures := 0
	for n := int64(0); n < 60; n++ {
		mem := vfs.NewCrashableMem()
		var count atomic.Int64
		var armed atomic.Bool
		faulty := newFaultFS(mem, func(op errorfs.Op) error {
			if armed.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasSuffix(op.Path, ".log") &&
				count.Add(1)-1 == n {
				return syscall.EIO
			}
			return nil
		})
		d := open(t, Options{Dir: "/store", fs: faulty})
		armed.Store(true)
		acked, err := publishUntil(d, 40)
		failed := d.store.Failure() != nil
		if failed {
			failures++
			if err == nil {
				t.Errorf("write %d failed, and no publish did", n)
			}
			_, err := d.Publish(ctx, []*driver.Message{{ID: "late", Topic: "jobs"}}, driver.PublishOptions{})
			refused(t, "a publish after a failed write", err, driver.ErrClosed, "stopped")
			_, err = d.Stats(ctx, "jobs")
			refused(t, "Stats after a failed write", err, driver.ErrClosed, "stopped")
		}
		if err := d.Close(ctx); failed == (err == nil) {
			t.Errorf("write %d: failed %v, Close says %v", n, failed, err)
		}
		again := open(t, Options{Dir: "/store", fs: mem.CrashClone(vfs.CrashCloneCfg{})})
		for _, id := range acked {
			if _, err := again.Get(ctx, driver.Target{Topic: "jobs", ID: id}); err != nil {
				t.Errorf("write %d failed, %q was acknowledged before: %v", n, id, err)
			}
		}
		if err := again.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	if failures < 20 {
		t.Errorf("only %d writes failed", failures)
	}
}

// publishUntil publishes up to most messages, and returns those that were acknowledged before the first error.
func publishUntil(d *Driver, most int) (acked []string, err error) {
	for i := range most {
		m := &driver.Message{ID: fmt.Sprint("m", i), Topic: "jobs", Body: []byte("body")}
		if _, err := d.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{}); err != nil {
			return acked, err
		}
		acked = append(acked, m.ID)
	}
	return acked, nil
}

// TestFailureEndsWaits: a Receive that waits when the store stops returns.
func TestFailureEndsWaits(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	faulty := newFaultFS(vfs.NewMem(), func(op errorfs.Op) error {
		if broken.Load() && op.Kind == errorfs.OpFileSyncData {
			return syscall.EIO
		}
		return nil
	})
	d := open(t, Options{Dir: "/store", fs: faulty})
	s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "other", Instance: "test"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := s.Receive(ctx, 1)
		ended <- err
	}()
	broken.Store(true)
	_, err = publishUntil(d, 1)
	refused(t, "a publish whose sync fails", err, driver.ErrUnknown, "may or may not")
	refused(t, "a Receive that waits", <-ended, driver.ErrClosed, "stopped")
	if err := d.Close(ctx); err == nil {
		t.Error("Close does not tell that a sync failed")
	}
}

// TestFailedWriteOfAValue: a value that could not be stored is shown to nobody, and who waits is told that the store
// stopped.
func TestFailedWriteOfAValue(t *testing.T) {
	t.Parallel()
	for _, kind := range []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileSyncData} {
		var broken atomic.Bool
		faulty := newFaultFS(vfs.NewMem(), func(op errorfs.Op) error {
			if broken.Load() && op.Kind == kind {
				return syscall.ENOSPC
			}
			return nil
		})
		d := open(t, Options{Dir: "/store", fs: faulty})
		kv := d.KV()
		stored := kv.Apply(ctx, "things", driver.KVOptions{}, driver.Write{Name: "a", Data: []byte("stored")})[0]
		if stored.Err != nil {
			t.Fatal(stored.Err)
		}
		waited := make(chan error, 1)
		go func() {
			_, err := kv.Wait(ctx, "others", "a", 0)
			waited <- err
		}()
		broken.Store(true)
		r := kv.Apply(ctx, "things", driver.KVOptions{}, driver.Write{Name: "a", Data: []byte("lost")})[0]
		refused(t, "a write that fails", r.Err, driver.ErrUnknown, "may or may not")
		_, err := kv.Get(ctx, "things", "a")
		refused(t, "Get after a failed write", err, driver.ErrClosed, "stopped")
		_, err = kv.Get(ctx, "others", "a")
		refused(t, "Get in another bucket", err, driver.ErrClosed, "stopped")
		_, err = kv.List(ctx, driver.KVQuery{Bucket: "things"})
		refused(t, "List after a failed write", err, driver.ErrClosed, "stopped")
		_, _, err = kv.Changes(ctx, "things", stored.Revision)
		refused(t, "Changes after a failed write", err, driver.ErrClosed, "stopped")
		r = kv.Apply(ctx, "things", driver.KVOptions{}, driver.Write{Name: "a", If: driver.Condition(stored.Revision)})[0]
		refused(t, "a write after a failed one", r.Err, driver.ErrClosed, "stopped")
		refused(t, "Wait beside a failed write", <-waited, driver.ErrClosed, "stopped")
		if err := d.Close(ctx); err == nil {
			t.Error("Close does not tell that a write failed")
		}
	}
}

// TestFullDisk: below the reserve publishing is refused, settling goes on, and it recovers by itself.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, fullDisk)
}

func fullDisk(t *testing.T) {
	mem := vfs.NewMem()
	free := func(mb uint64) { mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mb << 20, TotalBytes: 1 << 40}) }
	free(1000)
	d := open(t, Options{Dir: "/store", fs: mem, Reserve: 100 << 20})
	publishN(t, d, 3)
	free(99)
	time.Sleep(lookEvery) // a look at the disk is not repeated before
	for _, o := range []driver.PublishOptions{{}, {Atomic: true}} {
		_, err := d.Publish(ctx, []*driver.Message{{ID: "a", Topic: "jobs"}, {ID: "b", Topic: "jobs"}}, o)
		refused(t, "a publish to a full disk", err, driver.ErrFull, "less than the reserve")
	}
	if n := takeAll(t, d, "jobs"); n != 3 {
		t.Errorf("%d messages settled on a full disk", n)
	}
	free(1000)
	time.Sleep(lookEvery)
	if acked, err := publishUntil(d, 1); len(acked) != 1 {
		t.Errorf("a publish after space was freed: %v", err)
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestFlippedBitInTheLog damages one byte of a log that was synced. Either that is detected, or nothing is missing.
func TestFlippedBitInTheLog(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, rand.Uint64()))
	detected := 0
	for range 100 {
		mem := vfs.NewCrashableMem()
		d := open(t, Options{Dir: "/store", fs: mem})
		acked, err := publishUntil(d, 20)
		if err != nil {
			t.Fatal(err)
		}
		crashed := mem.CrashClone(vfs.CrashCloneCfg{})
		if err := d.Close(ctx); err != nil {
			t.Fatal(err)
		}
		flip(t, crashed, rng)
		d, err = New(context.Background(), Options{Dir: "/store", fs: crashed})
		if err != nil {
			detected++
			refused(t, "a damaged log", err, driver.ErrInvalid, "cannot be opened")
			continue
		}
		for i, id := range acked[:len(acked)-1] { // nothing is written behind the last sync that could tell of it
			if _, err := d.Get(ctx, driver.Target{Topic: "jobs", ID: id}); err != nil {
				t.Errorf("message %d was synced, and is silently gone: %v", i, err)
				break
			}
		}
		if err := d.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	if detected < 50 {
		t.Errorf("only %d of 100 flipped bits were detected", detected)
	}
}

// flip changes one bit of the log.
func flip(t *testing.T, mem *vfs.MemFS, rng *rand.Rand) {
	t.Helper()
	names, err := mem.List("/store/data")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".log") {
			continue
		}
		data, err := mem.UnsafeGetFileDataBuffer("/store/data/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 0 {
			data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
			return
		}
	}
	t.Fatal(errors.New("there is no log"))
}

// TestOpenEndsWithItsContext: a disk that does not answer while a store is opened does not keep its caller, who was
// told to end. When it answers, what was opened is closed, and the store can be opened again.
func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := vfs.NewMem()
		if err := open(t, Options{Dir: "/store", fs: mem}).Close(ctx); err != nil {
			t.Fatal(err)
		}
		answer := make(chan struct{})
		stuck := newFaultFS(mem, func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileSync {
				<-answer
			}
			return nil
		})
		told, tell := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			_, err := Open(told, Options{Dir: "/store", fs: stuck})
			ended <- err
		}()
		synctest.Wait()
		tell()
		synctest.Wait()
		select {
		case err := <-ended:
			refused(t, "Open that was told to end", err, driver.ErrNotApplied, "not open in time")
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v does not say why", err)
			}
		default:
			t.Error("Open does not end")
		}
		close(answer)
		synctest.Wait()
		if err := open(t, Options{Dir: "/store", fs: mem}).Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
