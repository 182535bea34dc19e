package disk

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ferrymq/ferry/driver"
)

// TestBackup copies a store while it is used, and opens the copy.
func TestBackup(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Dir: t.TempDir()})
	publishN(t, d, 100)
	copied := filepath.Join(t.TempDir(), "copy")
	if err := d.Backup(ctx, copied); err != nil {
		t.Fatal(err)
	}
	refused(t, "a copy onto a store", d.Backup(ctx, copied), driver.ErrConflict, "contains a store")
	refused(t, "a copy into the store", d.Backup(ctx, filepath.Join(d.o.Dir, "copy")), driver.ErrInvalid,
		"inside of the store")
	refused(t, "a copy to nowhere", d.Backup(ctx, ""), driver.ErrInvalid, "no directory")
	if n := takeAll(t, d, "jobs"); n != 100 {
		t.Errorf("%d messages in the original", n)
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	wantJobs(t, copied, 100)
}

// wantJobs opens a store and demands that this many messages can be taken from it.
func wantJobs(t *testing.T, dir string, n int) {
	t.Helper()
	if text := wrong(t, Options{Dir: dir}); text != "" {
		t.Error(text)
	}
	d := open(t, Options{Dir: dir})
	if got := takeAll(t, d, "jobs"); got != n {
		t.Errorf("%d messages in %s, want %d", got, dir, n)
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestBackupOfUnowned copies a directory that nobody uses. What was in flight when its owner ended is so in the copy.
func TestBackupOfUnowned(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	d := open(t, o)
	publishN(t, d, 10)
	to := filepath.Join(t.TempDir(), "a", "copy")
	refused(t, "a copy of a store in use", Backup(ctx, o, to), driver.ErrConflict, "in use by process")
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := Backup(ctx, o, to); err != nil {
		t.Fatal(err)
	}
	wantJobs(t, to, 10)
	wantJobs(t, o.Dir, 10)
	refused(t, "a copy of nothing", Backup(ctx, Options{Dir: filepath.Join(to, "x")}, to+"2"), driver.ErrNotFound,
		"no store")
}

// TestBackupAtWork copies while callers publish: each one's messages are there up to some point, and at least those
// that were acknowledged before the copy began.
func TestBackupAtWork(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Dir: t.TempDir()})
	working, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	started := make(chan struct{}, 4)
	for caller := range 4 {
		wg.Go(func() {
			for i := 0; working.Err() == nil; i++ {
				m := &driver.Message{ID: fmt.Sprintf("%d-%d", caller, i), Topic: "jobs", Key: fmt.Sprint(caller),
					Body: make([]byte, 500)}
				if _, err := d.Publish(ctx, []*driver.Message{m}, driver.PublishOptions{}); err != nil {
					t.Error(err)
					return
				}
				if i == 20 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 4 {
		<-started
	}
	to := filepath.Join(t.TempDir(), "copy")
	err := d.Backup(ctx, to)
	stop()
	wg.Wait()
	if err := errors.Join(err, d.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	c := open(t, Options{Dir: to})
	for caller := range 4 {
		n := 0
		for ; ; n++ {
			if _, err := c.Get(ctx, driver.Target{Topic: "jobs", ID: fmt.Sprintf("%d-%d", caller, n)}); err != nil {
				break
			}
		}
		st, err := c.Stats(ctx, "jobs")
		if err != nil || n <= 20 {
			t.Errorf("caller %d has %d messages in the copy of %d, %v", caller, n, st.Messages, err)
		}
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if text := wrong(t, Options{Dir: to}); text != "" {
		t.Error(text)
	}
}
