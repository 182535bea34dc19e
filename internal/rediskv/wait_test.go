package rediskv

import (
	"sync"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
)

// Whoever waits asks every second with one cheap command, and sees what was written without a word, deleted, or expired
// meanwhile.
func TestLooksAreCheap(t *testing.T) {
	t.Parallel()
	r := newRig(t, redistest.Single(t, redistest.Options{}).URL())
	write := func(w driver.Write) driver.Value {
		t.Helper()
		res := r.kv.Apply(t.Context(), "one", driver.KVOptions{}, w)[0]
		if res.Err != nil {
			t.Fatal(res.Err)
		}
		return res.Value
	}
	// waits returns what a call of Wait saw that looked at least twice before something was done.
	waits := func(after uint64, do func()) (v driver.Value) {
		t.Helper()
		looks := r.gate.count("hget")
		var all sync.WaitGroup
		all.Go(func() {
			var err error
			if v, err = r.kv.Wait(t.Context(), "one", "a", after); err != nil {
				t.Error(err)
			}
		})
		r.until("two looks", func() bool { return r.gate.count("hget") >= looks+2 })
		do()
		all.Wait()
		return v
	}
	scripts := r.gate.count("evalsha")
	var first, second driver.Value
	if v := waits(0, func() { first = write(driver.Write{Name: "a", Quiet: true}) }); v.Revision != first.Revision {
		t.Errorf("a value that came: %+v, want revision %d", v, first.Revision)
	}
	if n := r.gate.count("evalsha") - scripts; n != 3 {
		t.Errorf("%d scripts ran, want 3: a read, the write, and a read of what is new", n)
	}
	if v := waits(first.Revision, func() {
		second = write(driver.Write{Name: "a", TTL: 4 * time.Second, Quiet: true})
	}); v.Revision != second.Revision {
		t.Errorf("a value that was replaced: %+v, want revision %d", v, second.Revision)
	}
	if v := waits(second.Revision, func() {}); v.Revision != 0 {
		t.Errorf("a value that expired: %+v", v)
	}
	second = write(driver.Write{Name: "a"})
	if v := waits(second.Revision, func() { write(driver.Write{Name: "a", Delete: true, Quiet: true}) }); v.Revision != 0 {
		t.Errorf("a value that was deleted: %+v", v)
	}
}
