package uuid7

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"
)

func TestNewIsAVersion7UUID(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 10_000 {
		id := New(time.Now())
		if !form.MatchString(id) {
			t.Fatalf("%q is not a UUID of version 7", id)
		}
		if seen[id] {
			t.Fatalf("%q was made twice", id)
		}
		seen[id] = true
	}
}

func TestLaterIDsSortLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := New(time.Now())
		for range 1000 {
			time.Sleep(time.Millisecond) // virtual
			id := New(time.Now())
			if id <= last {
				t.Fatalf("%s was made after %s but sorts before it", id, last)
			}
			last = id
		}
	})
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		New(time.Now())
	}
}
