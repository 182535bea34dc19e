package disk

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
)

// TestMergedBatchesKeepTheirOrder: what only the last batch counts of is not set behind a later removal.
func TestMergedBatchesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Dir: "/store", fs: vfs.NewMem()})
	s := d.store
	key := []byte("\xf0key")
	set := func(value string) *batch {
		b := s.Batch().(*batch)
		b.SetLatest(key, []byte(value))
		return b
	}
	remove := s.Batch().(*batch)
	remove.DeleteRange([]byte("\xf0"), []byte("\xf1"))
	for _, c := range []struct {
		batches []*batch
		want    string
	}{{[]*batch{set("1"), set("2")}, "2"}, {[]*batch{set("3"), remove}, ""}} {
		if err := s.write(c.batches); err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.Read([][]byte{key}, func(_ int, v []byte) { got = string(v) }); err != nil || got != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestUnreadableMessages damages records behind the back of the driver: what cannot be decoded when it is claimed goes
// to the parse errors, whole, and is still there after a restart.
func TestUnreadableMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := Options{Dir: "/store", fs: vfs.NewMem(), CacheBytes: 1}
		d := open(t, o)
		publishN(t, d, 5)
		if err := d.Close(ctx); err != nil {
			t.Fatal(err)
		}
		d = open(t, o)
		damage(t, d, 2, func(v []byte) []byte { v[len(v)-20] ^= 1; return v })
		damage(t, d, 3, func([]byte) []byte { return []byte("rubbish") })
		damage(t, d, 4, nil)
		s, err := d.Subscribe(ctx, driver.SubscribeOptions{Topic: "jobs", Instance: "test"})
		if err != nil {
			t.Fatal(err)
		}
		ds, err := s.Receive(ctx, 10)
		if err != nil || len(ds) != 2 {
			t.Fatalf("%d deliveries, %v; want the 2 that are whole", len(ds), err)
		}
		if err := errors.Join(s.Settle(ctx, []driver.Settlement{{Delivery: ds[0]}, {Delivery: ds[1]}})...); err != nil {
			t.Fatal(err)
		}
		wantInvalid(t, d)
		if err := d.Close(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		damaged := open(t, o)
		st, err := damaged.Stats(ctx, "jobs")
		if err != nil || st.Invalid != 3 || len(st.Unbalanced()) > 0 {
			t.Errorf("after a restart: %+v, %v", st, err)
		}
		if err := damaged.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func wantInvalid(t *testing.T, d *Driver) {
	t.Helper()
	page, err := d.Browse(ctx, driver.Query{Topic: "jobs", State: driver.StateInvalid})
	if err != nil || len(page.Entries) != 3 {
		t.Fatalf("%d parse errors, %v; want 3", len(page.Entries), err)
	}
	for _, e := range page.Entries {
		if e.Problem == "" {
			t.Errorf("%+v has no problem", e)
		}
	}
	st, err := d.Stats(ctx, "jobs")
	if err != nil || len(st.Unbalanced()) > 0 || st.Groups[0].Ready+st.Groups[0].Inflight != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// damage changes the record of a message of the first topic; nil removes it.
func damage(t *testing.T, d *Driver, seq byte, change func([]byte) []byte) {
	t.Helper()
	key := []byte{0, 0, 0, 1, 'm', 0, 0, 0, 0, 0, 0, 0, seq}
	value, closer, err := d.store.db.Get(key)
	if err != nil {
		t.Fatalf("message %d: %v", seq, err)
	}
	own := append([]byte(nil), value...)
	err = closer.Close()
	if change == nil {
		err = errors.Join(err, d.store.db.Delete(key, pebble.NoSync))
	} else {
		err = errors.Join(err, d.store.db.Set(key, change(own), pebble.NoSync))
	}
	if err != nil {
		t.Fatal(err)
	}
}
