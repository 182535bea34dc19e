package kv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// FuzzRestore: a damaged record is an error, never a panic, and a sound one comes back as it was.
func FuzzRestore(f *testing.F) {
	v := &value{data: []byte("data"), revision: 7, epoch: 5, written: time.Unix(1, 2), ends: time.Unix(3, 4)}
	f.Add(textKey(keyValue, "b", "n"), appendValue(nil, v))
	f.Add(textKey(keyRequest, "b", "n"), appendAnswer(nil, answer{driver.Value{Name: "x", Revision: 3}, time.Unix(9, 0)}))
	f.Add([]byte{keyRevision}, []byte{0x80})
	f.Add([]byte("v"), []byte{})
	f.Fuzz(func(t *testing.T, key, data []byte) {
		l := NewLocal(LocalOptions{})
		if err := l.Restore(key, data); err != nil || len(key) == 0 || key[0] != keyValue {
			return
		}
		for name, b := range l.buckets {
			for n, got := range b.values {
				again, err := decodeValue(appendValue(nil, got))
				if err != nil || again.revision != got.revision || again.epoch != got.epoch ||
					string(again.data) != string(got.data) || !again.ends.Equal(got.ends) {
					t.Errorf("%s %s: %+v came back as %+v, %v", name, n, got, again, err)
				}
			}
		}
	})
}

// TestBucketIsBounded: a bucket takes no more values, and no more requests, than it may, and room that expiry makes is
// used.
func TestBucketIsBounded(t *testing.T) {
	now := time.Unix(1_000, 0)
	b := NewBucket("b", 0)
	for i := range driver.MaxValues {
		w := driver.Write{Name: fmt.Sprint(i), TTL: time.Duration(i+1) * time.Second}
		if r, _ := b.Apply(&w, now, 0); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	over := driver.Write{Name: "over"}
	if r, _ := b.Apply(&over, now, 0); !errors.Is(r.Err, driver.ErrFull) {
		t.Errorf("one more value: %v", r.Err)
	}
	if r, _ := b.Apply(&driver.Write{Name: "7"}, now, 0); r.Err != nil {
		t.Errorf("a value that is there: %v", r.Err)
	}
	if r, _ := b.Apply(&over, now.Add(time.Second), 0); r.Err != nil {
		t.Errorf("after one has expired: %v", r.Err)
	}
	b = NewBucket("b", 0)
	for i := range driver.MaxRequests {
		if r, _ := b.Apply(&driver.Write{Name: "a", Request: fmt.Sprint(i)}, now, 0); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if r, _ := b.Apply(&driver.Write{Name: "a", Request: "over"}, now, 0); !errors.Is(r.Err, driver.ErrFull) {
		t.Errorf("one more request: %v", r.Err)
	}
	if r, _ := b.Apply(&driver.Write{Name: "a", Request: "over"}, now.Add(driver.RequestFor), 0); r.Err != nil {
		t.Errorf("a minute later: %v", r.Err)
	}
}

// TestNamesStayInOrder: names that come and go are listed each once, in order, and what nobody lists takes no room.
func TestNamesStayInOrder(t *testing.T) {
	now := time.Unix(1_000, 0)
	b := NewBucket("b", 0)
	want := map[string]bool{}
	for i := range 20_000 {
		name := fmt.Sprint(i * 7919 % 500)
		w := driver.Write{Name: name, Delete: want[name], TTL: time.Duration(1-b2i(want[name])) * time.Hour}
		want[name] = !want[name]
		if r, _ := b.Apply(&w, now, 0); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if n, m := len(b.names.fresh)+len(b.names.sorted), len(b.ends); n > 4_000 || m > 4_000 {
		t.Errorf("%d names and %d endings are kept", n, m)
	}
	page := b.List(driver.KVQuery{Limit: 1_000}, now)
	left := 0
	for _, there := range want {
		left += b2i(there)
	}
	if len(page.Values) != left {
		t.Errorf("%d values are listed, want %d", len(page.Values), left)
	}
	for i, v := range page.Values {
		if !want[v.Name] || i > 0 && v.Name <= page.Values[i-1].Name {
			t.Errorf("%q at %d", v.Name, i)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestStoreForgets: what has expired, and requests whose minute is over, leave the store too, whoever notices it.
func TestStoreForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stored := map[string]bool{}
		l := NewLocal(LocalOptions{Save: func(rs []Record, _ bool) Saving {
			for _, r := range rs {
				if delete(stored, string(r.Key)); r.Value != nil {
					stored[string(r.Key)] = true
				}
			}
			return func(context.Context, bool) error { return nil }
		}})
		defer l.Close()
		for i := range 500 {
			w := driver.Write{Name: fmt.Sprint(i), TTL: time.Minute, Request: fmt.Sprint("r", i)}
			if r := l.Apply(t.Context(), "b", driver.KVOptions{}, w)[0]; r.Err != nil {
				t.Fatal(r.Err)
			}
			time.Sleep(time.Second)
		}
		synctest.Wait() // for a sweep that is under way
		if n := len(stored); n > 2*70+1 {
			t.Errorf("%d records are stored of a minute of values and requests", n)
		}
	})
}
