package drivertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// kvWaits: who waits is woken by a write, a deletion and an end, and not by others.
func kvWaits(t *T) {
	k := t.kv()
	wait := func(name string, after uint64) <-chan driver.Value {
		woken := make(chan driver.Value, 1)
		go func() {
			v, err := k.Wait(t.ctx(), bucket, name, after)
			if err != nil {
				t.Errorf("Wait: %v", err)
			}
			woken <- v
		}()
		return woken
	}
	coming := wait("a", 0)
	t.set(driver.Write{Name: "b"})
	select {
	case v := <-coming:
		t.Fatalf("woken by another's write: %+v", v)
	case <-time.After(quiet):
	}
	first := t.set(driver.Write{Name: "a", Data: []byte("one")})
	if v := <-coming; v.Revision != first.Revision || string(v.Data) != "one" {
		t.Errorf("%+v", v)
	}
	if v := <-wait("a", 0); v.Revision != first.Revision {
		t.Errorf("what is there already: %+v", v)
	}
	leaving := wait("a", first.Revision)
	t.set(driver.Write{Name: "a", Delete: true})
	if v := <-leaving; v.Revision != 0 {
		t.Errorf("deleted: %+v", v)
	}
	due := time.Now().Add(unit)
	third := t.set(driver.Write{Name: "a", TTL: unit})
	if v := <-wait("a", third.Revision); v.Revision != 0 {
		t.Errorf("expired: %+v", v)
	}
	t.onTime(due, "who waits for the end")
	silent := wait("c", 0)
	t.set(driver.Write{Name: "c", Quiet: true})
	if v := <-silent; v.Revision == 0 {
		t.Errorf("a quiet write: %+v", v)
	}
	ctx := t.within(quiet)
	if _, err := t.kv().Wait(ctx, bucket, "never", 0); !errors.Is(err, ctx.Err()) || err == nil {
		t.Errorf("Wait until its context ends: %v", err)
	}
}

// kvChanges: each value that was written after a revision, once, as it is now.
func kvChanges(t *T) {
	before := t.set(driver.Write{Name: "a"})
	t.set(driver.Write{Name: "b"})
	t.set(driver.Write{Name: "a", Data: []byte("two")})
	c := t.set(driver.Write{Name: "c"})
	t.set(driver.Write{Name: "b", Delete: true})
	vs, upTo, err := t.kv().Changes(t.ctx(), bucket, before.Revision)
	t.ok(err, "Changes")
	var got []string
	for _, v := range vs {
		got = append(got, fmt.Sprint(v.Name, " ", string(v.Data), " ", v.Deleted))
	}
	t.equal(got, []string{"a two false", "c  false", "b  true"}, "changes")
	if upTo <= c.Revision {
		t.Errorf("up to %d, although b was deleted after %d", upTo, c.Revision)
	}
	coming := make(chan []driver.Value, 1)
	go func() {
		vs, _, err := t.kv().Changes(t.ctx(), bucket, upTo)
		if err != nil {
			t.Errorf("Changes: %v", err)
		}
		coming <- vs
	}()
	d := t.set(driver.Write{Name: "d"})
	if vs := <-coming; len(vs) != 1 || vs[0].Revision != d.Revision {
		t.Errorf("%+v", vs)
	}
}

// kvChangesAreForgotten: who comes too late is told so, and goes on from a listing.
func kvChangesAreForgotten(t *T) {
	first := t.set(driver.Write{Name: "a"})
	ws := make([]driver.Write, 250)
	_, _, err := t.kv().Changes(t.ctx(), bucket, 0)
	for round := 0; err == nil || !errors.Is(err, driver.ErrNotFound); round++ {
		if round > 100 {
			t.Fatalf("after %d writes: %v", round*len(ws), err)
		}
		for i := range ws { // half of them deletions, of names that never come again
			ws[i] = driver.Write{Name: fmt.Sprint(round, "/", i/2), Delete: i%2 == 1, Quiet: true}
		}
		for _, r := range t.kv().Apply(t.ctx(), bucket, driver.KVOptions{}, ws...) {
			t.ok(r.Err, "write")
		}
		_, _, err = t.kv().Changes(t.ctx(), bucket, first.Revision)
	}
	page, err := t.kv().List(t.ctx(), driver.KVQuery{Bucket: bucket})
	t.ok(err, "List")
	t.equal(len(page.Values), 1, "values")
	last := t.set(driver.Write{Name: "last"})
	vs, upTo, err := t.kv().Changes(t.ctx(), bucket, page.Revision)
	t.ok(err, "Changes after the listing")
	if len(vs) != 1 || vs[0].Revision != last.Revision || upTo != last.Revision {
		t.Errorf("%+v up to %d, want %+v", vs, upTo, last)
	}
}

// kvClosed: calls after Close, and those that wait in it, say so.
func kvClosed(t *T) {
	k := t.kv()
	ended := make(chan error, 2)
	go func() { _, err := k.Wait(t.ctx(), bucket, "a", 0); ended <- err }()
	go func() { _, _, err := k.Changes(t.ctx(), bucket, 0); ended <- err }()
	t.pass(quiet)
	t.ok(t.Close(t.ctx()), "Close")
	for range 2 {
		t.wantErr(<-ended, driver.ErrClosed, "a call that waited")
	}
	_, err := k.Get(t.ctx(), bucket, "a")
	t.wantErr(err, driver.ErrClosed, "Get")
	t.wantErr(k.Apply(t.ctx(), bucket, driver.KVOptions{}, driver.Write{Name: "a"})[0].Err, driver.ErrClosed, "Apply")
}
