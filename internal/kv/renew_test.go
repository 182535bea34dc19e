package kv

import (
	"errors"
	"testing"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// TestRenew: another clock gives what lives its whole TTL again, wherever it stands, and brings back nothing that had
// expired.
func TestRenew(t *testing.T) {
	for name, other := range map[string]time.Time{"ahead": time.Unix(9_000, 0), "behind": time.Unix(10, 0)} {
		t.Run(name, func(t *testing.T) {
			b, at := NewBucket("b", 0), time.Unix(1_000, 0)
			for _, w := range []driver.Write{{Name: "over", TTL: time.Second},
				{Name: "lives", TTL: time.Minute, Request: "r"}, {Name: "ever"}} {
				if r, _ := b.Apply(&w, at, 0); r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			lives := b.Get("lives", at)
			b.Renew(at.Add(30*time.Second), other)
			if v := b.Get("over", other); v.Revision != 0 {
				t.Errorf("what had expired is %+v", v)
			}
			if v := b.Get("lives", other); v.Left != time.Minute || v.Epoch != lives.Epoch {
				t.Errorf("what lives is %+v", v)
			}
			if v := b.Get("ever", other); v.Revision == 0 || v.Left != 0 {
				t.Errorf("what has no TTL is %+v", v)
			}
			again := driver.Write{Name: "lives", If: driver.Absent, Request: "r"}
			if r, _ := b.Apply(&again, other.Add(59*time.Second), 0); r.Err != nil || r.Revision != lives.Revision {
				t.Errorf("the request within its minute by the new clock: %+v", r)
			}
			fresh := driver.Write{Name: "lives", If: driver.Absent}
			if r, _ := b.Apply(&fresh, other.Add(time.Minute-1), 0); !errors.Is(r.Err, driver.ErrConflict) {
				t.Errorf("before its end: %+v", r)
			}
			if r, _ := b.Apply(&fresh, other.Add(time.Minute), 0); r.Err != nil || r.Epoch == lives.Epoch {
				t.Errorf("at its end: %+v", r)
			}
		})
	}
}

// TestExport: what is taken out and put into another bucket is judged as before.
func TestExport(t *testing.T) {
	b, at := NewBucket("b", 0), time.Unix(1_000, 0)
	for _, w := range []driver.Write{{Name: "b", Data: []byte("x"), TTL: time.Minute, Request: "r"}, {Name: "a"},
		{Name: "over", TTL: time.Second}} {
		if r, _ := b.Apply(&w, at, 0); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	vs, as := b.Export(at.Add(10 * time.Second))
	if len(vs) != 2 || vs[0].Name != "a" || len(as) != 1 {
		t.Fatalf("%+v %+v", vs, as)
	}
	c := NewBucket("b", 0)
	for _, v := range vs {
		c.Import(v)
	}
	for _, a := range as {
		c.ImportAnswer(a)
	}
	for _, after := range []time.Duration{10 * time.Second, time.Minute - 1, time.Minute} {
		for _, name := range []string{"a", "b", "over"} {
			was, is := b.Get(name, at.Add(after)), c.Get(name, at.Add(after))
			if was.Revision != is.Revision || was.Epoch != is.Epoch || was.Left != is.Left ||
				string(was.Data) != string(is.Data) {
				t.Errorf("%s after %v is %+v, was %+v", name, after, is, was)
			}
		}
	}
	if r, e := c.Apply(&driver.Write{Name: "b", Request: "r"}, at.Add(59*time.Second), 0); e.Applied ||
		r.Revision != b.Get("b", at).Revision {
		t.Errorf("the request: %+v", r)
	}
}
