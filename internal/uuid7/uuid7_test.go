package uuid7

import (
	"fmt"
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

func TestHexWritesEveryDigit(t *testing.T) {
	for _, n := range []uint32{0, 0x01234567, 0x89abcdef, 0xffffffff, 0x9a9a9a9a, 0xa0f90b1c} {
		var text [8]byte
		if hex(text[:], n); string(text[:]) != fmt.Sprintf("%08x", n) {
			t.Errorf("%08x is written as %s", n, text[:])
		}
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
