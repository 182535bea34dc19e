package disk

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/ferrymq/ferry/driver"
)

var (
	indexMark  = []byte{0, 0, 0, 1, 'i'}
	indexChunk = []byte{0, 0, 0, 1, 'i', 0, 0, 0, 0, 0, 0, 0, 2}
)

// everything is all that can be seen of a store, as one text.
func everything(t *testing.T, d *Driver) string {
	t.Helper()
	topics, err := d.Topics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, info := range topics {
		st, err := d.Stats(ctx, info.Topic)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info, st)
		for _, state := range []driver.State{driver.StateDelayed, driver.StateHeld, driver.StateInvalid, driver.StateReady,
			driver.StateWaiting, driver.StateDead} {
			q := driver.Query{Topic: info.Topic, State: state, Limit: 1000}
			if state == driver.StateReady || state == driver.StateWaiting || state == driver.StateDead {
				q.Group = driver.DefaultGroup
			}
			page, err := d.Browse(ctx, q)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, state, page.Entries)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSnapshot: what Close wrote about a topic gives the same as reading all of it, is used once, and not if it is
// damaged.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*testing.T, *vfs.MemFS)
	}{
		{"whole", func(*testing.T, *vfs.MemFS) {}},
		{"without a mark", func(t *testing.T, mem *vfs.MemFS) { changeRecord(t, mem, indexMark, nil) }},
		{"damaged mark", func(t *testing.T, mem *vfs.MemFS) {
			changeRecord(t, mem, indexMark, func([]byte) []byte { return []byte("x") })
		}},
		{"without a chunk", func(t *testing.T, mem *vfs.MemFS) { changeRecord(t, mem, indexChunk, nil) }},
		{"damaged chunk", func(t *testing.T, mem *vfs.MemFS) {
			changeRecord(t, mem, indexChunk, func(v []byte) []byte { v[len(v)/2] ^= 1; return v })
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem := checkedStore(t, true)
			o := Options{Dir: "/store", fs: mem, snapshotFrom: 1}
			d := open(t, o)
			want := everything(t, d)
			if err := d.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if !hasRecord(t, mem, indexMark) || !hasRecord(t, mem, indexChunk) {
				t.Fatal("Close wrote no snapshot")
			}
			c.change(t, mem)
			o.snapshotFrom = 1 << 30 // and does not write another
			d = open(t, o)
			if got := everything(t, d); got != want {
				t.Errorf("%s: %s\nwant %s", c.name, got, want)
			}
			if err := d.Close(ctx); err != nil {
				t.Error(err)
			}
			if hasRecord(t, mem, indexMark) || hasRecord(t, mem, indexChunk) {
				t.Errorf("%s: something of it is left", c.name)
			}
			if text := wrong(t, o); text != "" {
				t.Errorf("%s: %s", c.name, text)
			}
		})
	}
}

// TestOpeningIsLogged: who waits for a store to open is told what is read, and when it is done.
func TestOpeningIsLogged(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	o := Options{Dir: "/store", fs: vfs.NewMem(), Logger: slog.New(slog.NewTextHandler(&told, nil))}
	d := open(t, o)
	some(t, d, 12)
	if err := d.Close(ctx); err != nil {
		t.Fatal(err)
	}
	told.Reset()
	if err := open(t, o).Close(ctx); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"reading the store", "topic=jobs messages=12", "the store is open"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("%q was not told: %s", want, told.String())
		}
	}
}

func hasRecord(t *testing.T, mem *vfs.MemFS, key []byte) bool {
	t.Helper()
	db, err := pebble.Open("/store/data", &pebble.Options{FS: mem, Logger: &fatalLogger{}, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	_, closer, err := db.Get(key)
	if err == nil {
		err = closer.Close()
	}
	if cerr := db.Close(); cerr != nil {
		t.Fatal(cerr)
	}
	return err == nil
}
